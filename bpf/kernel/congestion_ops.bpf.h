/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The shell that all algorithms share: a tcp_congestion_ops whose slow start is an algorithm of algorithm/ and whose
 * everything else is the base. A <name>.bpf.c includes its algorithm, names it, and includes this file:
 *
 *	#include "algorithm/search.h"
 *	#define ALGORITHM search
 *	#define ALGORITHM_UPPER SEARCH
 *	#include "kernel/congestion_ops.bpf.h"
 *
 * Here are the operations that the kernel calls. Each collects what the shell's decisions (shell/) need, calls these, the
 * algorithm and the base, and reports what happened. storage.bpf.h has the maps and the state of a flow.
 */
#include "../shell/entry.h"
#include "base.bpf.h"

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define CALL(function) PASTE(ALGORITHM, function)
#define ALL_TRAITS PASTE(ALGORITHM_UPPER, TRAITS)
#define HAS(trait) (ALL_TRAITS & (trait))

/* Defines <name>_<operation>; BPF_PROG pastes its name, so it must be expanded before. */
#define NAMED_PROG(name, args...) BPF_PROG(name, args)
#define OPERATION(type, operation, args...) SEC("struct_ops") type NAMED_PROG(CALL(operation), args)

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#include "storage.bpf.h"
#include "extra.bpf.h"
#include "observe.bpf.h"
#include "resume.bpf.h"
#include "faster.bpf.h"
#include "sleep.bpf.h"
#include "acked.bpf.h"

OPERATION(void, init, struct sock *sk)
{
	struct counters *count = counters_here();
	bool adopted = is_adopted(sk);
	struct flow *flow;

	base_init(sk);
	if (count)
		__sync_fetch_and_add(&count->flows.started, 1);
	if (!adopted) {
		resume_begins(sk);
		return;
	}
	if (count)
		__sync_fetch_and_add(&count->flows.adopted, 1);
	if (guarding)
		guard_leave_out(sk);
	flow = begin_flow(sk);
	if (!flow)
		return;
	adopt(sk, &flow->header, limits_of(sk, flow));
	observe_at(sk, flow, LEVEL_EXIT);
}

/* Set again by every flow that ends: the loader, which lifts a deadline, writes all of the attachment. */
static __always_inline void trip(void)
{
	__sync_fetch_and_or(&attachment_here.flags, ATTACHMENT_TRIPPED);
}

OPERATION(void, release, struct sock *sk)
{
	struct counters *count = counters_here();
	struct flow *flow = flow_of(sk);
	struct limits *limits = find_limits(sk);
	struct flow_telemetry *telemetry;

	disturb(sk);
	if (limits)
		end_pacing(sk, limits);
	if (guarding && guard_end(sk, expired()))
		trip();
	if (CAN_BE_FASTER)
		bpf_sk_storage_delete(&fasters, sk);
	if (!flow) {
		if (count && was_initialised(sk))
			__sync_fetch_and_add(&count->flows.without_state, 1);
		if (start_policies & START_BOTH)
			resume_released(sk);
		return;
	}
	if (start_policies & START_BOTH && !expired())
		learn_path(sk, &flow->header, true);
	telemetry = observe_at(sk, flow, LEVEL_EXIT);
	if (telemetry) {
		if (flow->header.flags & FLOW_EXIT_UNREPORTED)
			emit_exit(flow, telemetry, &flow->header.exit);
		observe_end(sk, flow, telemetry);
	}
	if (start_policies & START_BOTH)
		resume_released(sk);
	if (count) {
		end_profile(&flow->header, count);
		__sync_fetch_and_add(&count->exits[flow->header.exit.reason % 8], 1);
		__sync_fetch_and_add(&count->flows.exits_undone, flow->header.exit.undone);
	}
	delete_extra(sk);
	bpf_sk_storage_delete(&flow_telemetry, sk);
	bpf_sk_storage_delete(&flows, sk);
}

/* Whether the base works alone, HyStart included, which it has for slow start: in congestion avoidance, unless a consumer listens. */
static __always_inline bool runs_alone(const struct sock *sk)
{
	return !BASE_CONTROLS && !HAS(TRAIT_ALWAYS) && !is_below_threshold(sk) && !telemetry_here.wanted;
}

static __noinline void acked_asleep(struct sock *sk, const struct ack_sample *sample)
{
	base_acked(sk, sample);
}

static __noinline void acked_awake(struct sock *sk, const struct ack_sample *sample)
{
	struct ack_step step;

	wake(sk);
	ack_arrives(sk, ALL_TRAITS, HAS(TRAIT_ALWAYS) && observing, &step);
	/* Without state, or in recovery, the base works alone, unless a consumer needs the state. */
	if ((step.called || wanted(LEVEL_ROUND)) && !on_ack(sk, sample, &step))
		base_acked_alone(sk, sample);
	else
		base_acked(sk, sample);
}

/* What most ACKs need is here, and saves no registers for what others need. */
OPERATION(void, pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	if (guarding)
		guard_acked(sk, sample->pkts_acked);
	if (runs_alone(sk))
		base_acked_alone(sk, sample);
	else if (sleeps_on(sk, sample))
		acked_asleep(sk, sample);
	else
		acked_awake(sk, sample);
}

/* The base grows the window, within the limit of the last verdict if it set one. */
static __noinline void grow(struct sock *sk, u32 ack, u32 acked)
{
	struct growth_step step = growth_begins(sk);
	const struct limits *limits = growth_has_limits(step, ALL_TRAITS) ? find_limits(sk) : 0;

	bool reached;

	/* The verifier walks less where the base is called in either branch. */
	if (growth_before(limits, &acked)) {
		if (!acked)
			return;
		base_cong_avoid(sk, ack, acked);
		reached = growth_after(sk, limits, step, true);
	} else {
		base_cong_avoid(sk, ack, acked);
		reached = growth_after(sk, limits, step, false);
	}
	if (reached)
		at_threshold(sk);
}

#if BASE_CONTROLS
#include "startup.bpf.h"

/* An ACK, after pkts_acked and after what it says of losses. */
SEC("struct_ops") void CALL(cong_control)(unsigned long long *context)
{
	struct sock *sk = (struct sock *)context[0];
	struct base_sample base_sample = {};
	struct flow *flow;

	if (!base_in_startup(sk)) {
		base_control(context, &base_sample);
		return;
	}
	flow = flow_in_time(sk);
	if (flow && !observing) {
		control_start(sk, flow, context);
		return;
	}
	base_control(context, &base_sample);
	if (base_is_full(sk))
		at_threshold(sk);
}

OPERATION(u32, sndbuf_expand, struct sock *sk)
{
	return base_sndbuf_expand(sk);
}
#else
OPERATION(void, cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	bool starting = is_below_threshold(sk);

	if (HAS(TRAIT_LIMITS_GROWTH) && (starting || HAS(TRAIT_ALWAYS)) &&
	    limits_in_socket(sk)->flags & LIMITS_GROWTH) {
		grow(sk, ack, acked);
	} else if (starting) {
		base_cong_avoid(sk, ack, acked);
		if (!is_below_threshold(sk))
			at_threshold(sk);
	} else {
		base_cong_avoid(sk, ack, acked);
	}
}

/* An ACK, before pkts_acked. With AFTER_PROBE or POLICY_FAST alone: else the loader clears it. */
OPERATION(void, in_ack_event, struct sock *sk, u32 flags)
{
	struct limits *limits = limits_in_socket(sk);

	/* Not where the base runs alone. */
	if (probe_is_due(sk, limits) && flow_in_time(sk))
		begin_probe(sk, limits);
	if (CAN_BE_FAST && view_state(sk) == STATE_RECOVERY)
		fast_recovery(sk);
}
#endif

/* Loss, ECN or timeout. Which of them it is comes with the state that follows at once. */
OPERATION(u32, ssthresh, struct sock *sk)
{
	struct flow *flow = flow_in_time(sk);
	u32 threshold = base_ssthresh(sk);
	struct parameter_slot *slot;
	struct loss_payload payload;
	struct loss_step step;
	struct shell shell;
	u32 profile;

	disturb(sk);
	if (!flow)
		return threshold;
	shell = shell_of(sk, flow, observe_at(sk, flow, LEVEL_ROUND), observing);
	step = loss_before(&shell, threshold, &payload);
	if (step.called) {
		profile = flow->header.profile;
		slot = bpf_map_lookup_elem(&params, &profile);
		if (slot) {
			payload.called = 1;
			payload.ssthresh = CALL(on_loss)(&flow->state, active(slot, &flow->header.generation),
							 &payload.ack, payload.base_ssthresh);
		}
	}
	if (flow->header.flags & FLOW_STARTS)
		payload.ssthresh = resume_reduced(sk, flow, &payload.ack, payload.ssthresh);
	if (CAN_BE_FASTER && flow->header.flags & FLOW_FASTER)
		payload.ssthresh = faster_loses(sk, flow, &payload.ack, payload.ssthresh);
	loss_after(&shell, step, &payload);
	return payload.ssthresh;
}

OPERATION(void, set_state, struct sock *sk, u8 new_state)
{
	struct flow *flow = flow_of(sk);
	struct shell shell;

	base_state(sk, new_state);
	disturb(sk);
	if (!flow)
		return;
	shell = shell_of(sk, flow, observe_at(sk, flow, LEVEL_EXIT), observing);
	state_changes(&shell, new_state);
	if (CAN_BE_FAST && flow->header.flags & FLOW_FASTER)
		fast_state(sk, flow, new_state);
}

OPERATION(void, cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct flow *flow;

	base_cwnd_event(sk, event);
	if (event != CA_EVENT_CWND_RESTART)
		return;
	count_all(sk);
	wake_anew(sk);
	flow = flow_of(sk);
	if (flow)
		slow_start_ends(&flow->header);
}

OPERATION(void, cwnd_event_tx_start, struct sock *sk)
{
	base_tx_start(sk);
}

OPERATION(u32, undo_cwnd, struct sock *sk)
{
	u32 window = base_undo_cwnd(sk);
	struct flow *flow = flow_in_time(sk);
	struct undo_payload payload;
	struct shell shell;

	disturb(sk);
	if (!flow)
		return window;
	shell = shell_of(sk, flow, 0, observing);
	loss_was_spurious(&shell, window, &payload);
	shell.telemetry = observe_at(sk, flow, LEVEL_EXIT);
	report_undo(&shell, &payload);
	return payload.restored;
}

/*
 * Called each time before data is sent, for the minimum of segments in a burst, which the base knows. The loader clears it where
 * nothing can have to be paced.
 */
OPERATION(u32, min_tso_segs, struct sock *sk)
{
	struct limits *limits;

	if (view_paced(sk)) {
		limits = find_limits(sk);
		if (limits)
			pace(sk, limits);
	}
	return base_min_tso_segs(sk);
}

_Static_assert(sizeof(PASTE(ALGORITHM_UPPER, CONTROL)) <= TCP_CA_NAME_MAX, "the control's name is too long");

SEC(".struct_ops.link")
struct tcp_congestion_ops ALGORITHM = {
	.init = (void *)CALL(init),
	.release = (void *)CALL(release),
	.ssthresh = (void *)CALL(ssthresh),
#if BASE_CONTROLS
	.cong_control = (void *)CALL(cong_control),
	.sndbuf_expand = (void *)CALL(sndbuf_expand),
#else
	.cong_avoid = (void *)CALL(cong_avoid),
	.in_ack_event = (void *)CALL(in_ack_event),
#endif
	.set_state = (void *)CALL(set_state),
	.cwnd_event = (void *)CALL(cwnd_event),
	.cwnd_event_tx_start = (void *)CALL(cwnd_event_tx_start),
	.pkts_acked = (void *)CALL(pkts_acked),
	.undo_cwnd = (void *)CALL(undo_cwnd),
	.min_tso_segs = (void *)CALL(min_tso_segs),
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = PASTE(ALGORITHM_UPPER, CONTROL),
};
