/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * An ACK's way through the shell: what the algorithm sees, its turn, and what its verdict does. Included by
 * congestion_ops.bpf.h, which knows the algorithm.
 */
#ifndef ONRAMP_ACKED_BPF_H
#define ONRAMP_ACKED_BPF_H

#include "../shell/ack.h"
#include "../shell/life.h"
#include "extra.bpf.h"
#include "observe.bpf.h"
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

/* Calls the algorithm with an ACK. False: there are no parameters, which only a broken map could cause. */
static __always_inline bool call(struct sock *sk, struct flow *flow, struct ack_payload *payload)
{
	u32 profile = flow->header.profile;
	const struct parameter_slot *slot = bpf_map_lookup_elem(&params, &profile);
	const struct CALL(params) * values;

	if (!slot)
		return false;
	values = active(slot, &flow->header.generation);
	call_algorithm(flow, values, payload EXTRA_FOR_ACK(sk, values));
	payload->asked = 1;
	return true;
}

/* An ACK in slow start. */
static __always_inline void on_ack_starting(struct sock *sk, struct flow *flow, struct flow_telemetry *telemetry,
					    struct flow_telemetry *kept, struct ack_payload *payload)
{
	struct flow_header *header = &flow->header;
	const struct ack *ack = &payload->ack;
	bool begins = slow_start_begins(header, ack);

	if (begins) {
		CALL(restart)(&flow->state);
		restart_extra(sk);
		if (telemetry)
			observe_restart(flow, telemetry, ack);
	}
	if (observing) {
		if (kept && observed_before(header, &kept->observed, ack) && call(sk, flow, payload))
			observed_after(header, &kept->observed, ack, &payload->verdict);
		return;
	}
	if (begins && header->flags & FLOW_EXITING) {
		end_drain(header, ack, &payload->verdict);
		apply_verdict(sk, header, limits_of(sk, flow), ack, &payload->verdict, ALL_TRAITS);
	} else if (call(sk, flow, payload)) {
		apply_verdict(sk, header, limits_of(sk, flow), ack, &payload->verdict, ALL_TRAITS);
	}
}

/*
 * `starting`: in slow start; `called`: the algorithm is called. False: the base runs alone. In an initial window the
 * algorithm is not called, nor is the base's HyStart: it would end slow start before the algorithm's first ACK.
 */
static __always_inline bool on_ack(struct sock *sk, const struct ack_sample *sample, bool starting, bool called)
{
	struct flow *flow = flow_in_time(sk);
	struct flow_telemetry *telemetry, *kept;
	struct ack_payload payload;

	if (!flow) {
		if (!called || !needs_state(sk))
			return true;
		flow = begin_flow(sk);
		if (!flow)
			return false;
	}
	telemetry = observe_at(sk, flow, starting ? LEVEL_EXIT : LEVEL_ROUND);
	kept = observing ? bpf_sk_storage_get(&flow_telemetry, sk, 0, 0) : telemetry;
	describe(sk, sample->pkts_acked, sample->rtt_us, &payload.ack);
	/* Only the rest: what has just been described would be cleared first. */
	payload.verdict = (struct verdict){};
	payload.asked = payload.flags = payload.generation = payload.unused = 0;
	if (starting) {
		on_ack_starting(sk, flow, telemetry, kept, &payload);
	} else if (called && call(sk, flow, &payload)) {
		apply_window(sk, &flow->header, limits_of(sk, flow), &payload.verdict, ALL_TRAITS);
	}
	if (payload.asked)
		count_verdict(kept, payload.verdict.outcome);
	if (telemetry)
		observe_ack(sk, flow, telemetry, &payload);
	observe_exit(sk, flow);
	return true;
}

/* The window has grown to a threshold that was set before this slow start, or above the window by the algorithm. */
static __noinline void reached_threshold(struct sock *sk)
{
	struct flow *flow = flow_of(sk);
	struct ack ack;

	if (!flow || !(flow->header.flags & FLOW_SLOW_START))
		return;
	describe(sk, 0, NO_RTT, &ack);
	leave_at_threshold(sk, &flow->header, limits_of(sk, flow), &ack);
	observe_exit(sk, flow);
}

#endif
