/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * An ACK's way: to the shell, to the algorithm, and back. Included by congestion_ops.bpf.h, which knows the algorithm.
 */
#ifndef ONRAMP_ACKED_BPF_H
#define ONRAMP_ACKED_BPF_H

#include "../shell/entry.h"
#include "extra.bpf.h"
#include "faster.bpf.h"
#include "observe.bpf.h"
#include "resume.bpf.h"
#include "sleep.bpf.h"
#include "storage.bpf.h"

/*
 * The algorithm's turn. Global, so that the verifier looks at it once, and not again in every state that it is called
 * from.
 */
__noinline int call_algorithm(struct flow *flow, const struct CALL(params) * values,
			      struct ack_payload *payload EXTRA_PARAMETER)
{
	if (!flow || !values || !payload)
		return 0;
#if HAS(TRAIT_EXTRA)
	if (extra)
		call_extra(extra, values, payload);
#endif
	CALL(on_ack)(&flow->state, values, &payload->ack, &payload->verdict);
	return 0;
}

/* Calls the algorithm with an ACK, unless there are no parameters, which only a broken map could cause. */
static __always_inline void call(struct sock *sk, struct flow *flow, struct ack_payload *payload)
{
	u32 profile = flow->header.profile;
	const struct parameter_slot *slot = bpf_map_lookup_elem(&params, &profile);
	const struct CALL(params) * values;

	if (!slot)
		return;
	values = active(slot, &flow->header.generation);
	call_algorithm(flow, values, payload EXTRA_FOR_ACK(sk, values));
	payload->called = 1;
}

/* `observed`: observing, or a constant where that has been asked for already. */
static __always_inline struct shell shell_of(struct sock *sk, struct flow *flow, struct flow_telemetry *telemetry,
					     bool observed)
{
	return (struct shell){
		.sk = sk,
		.flow = &flow->header,
		.limits = limits_of(sk, flow),
		.telemetry = telemetry,
		.kept = telemetry,
		.traits = ALL_TRAITS,
		.reads = PASTE(ALGORITHM_UPPER, READS),
		.observing = observed,
	};
}

/* An ACK of a flow that has state. */
static __always_inline void step_flow(struct sock *sk, const struct ack_sample *sample, struct flow *flow,
				      struct ack_step *step, bool observed)
{
	struct flow_telemetry *telemetry = observe_at(sk, flow, step->starting ? LEVEL_EXIT : LEVEL_ROUND);
	struct shell shell = shell_of(sk, flow, telemetry, observed);
	struct ack_payload payload;

	if (observed)
		shell.kept = bpf_sk_storage_get(&flow_telemetry, sk, 0, 0);
	ack_before(&shell, sample->pkts_acked, sample->rtt_us, step, &payload);
	if (step->begins) {
		CALL(restart)(&flow->state);
		restart_extra(sk);
	}
	if (step->called)
		call(sk, flow, &payload);
	ack_after(&shell, step, &payload);
	if (!observed)
		sleep_if_idle(&shell, step, &payload);
}

/*
 * False: the base runs alone. In an initial window the algorithm is not called, nor is the base's HyStart: it would end slow
 * start before the algorithm's first ACK.
 */
static __always_inline bool on_ack(struct sock *sk, const struct ack_sample *sample, struct ack_step *step)
{
	struct flow *flow = flow_in_time(sk);

	if (!flow) {
		if (!ack_needs_state(sk, step))
			return true;
		flow = begin_flow(sk);
		if (!flow)
			return false;
		if (start_policies & START_BOTH && !observing)
			resume_joins(sk, flow);
		if (CAN_BE_FASTER && !(flow->header.flags & FLOW_STARTS))
			start_faster(sk, flow);
	}
	/* Asked once, of what the verifier knows: it keeps one of the two. */
	if (observing)
		step_flow(sk, sample, flow, step, true);
	else
		step_flow(sk, sample, flow, step, false);
	if (flow->header.flags & FLOW_STARTS)
		resume_acked(sk, flow, sample);
	if (CAN_BE_FASTER && flow->header.flags & FLOW_FASTER)
		faster_verdict(sk, flow, sample);
	return true;
}

/* The same where the telemetry has not been looked up. */
static __always_inline void conclude_late(struct shell *shell)
{
	if (!exit_is_due(shell->flow))
		return;
	shell->telemetry = observe_at(shell->sk, whole(shell), LEVEL_EXIT);
	report_exit(shell);
}

/* The window has grown to the threshold. */
static __noinline void at_threshold(struct sock *sk)
{
	struct flow *flow = flow_of(sk);
	struct shell shell;

	disturb(sk);
	if (!flow)
		return;
	shell = shell_of(sk, flow, 0, observing);
	reached_threshold(&shell);
	conclude_late(&shell);
}

#endif
