/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The operations of kernel/congestion_ops.bpf.h on the host: the same decisions (shell/), in the same order. The caller has
 * the algorithm and the base, so each operation that calls one of them is in two parts. An attachment here neither
 * observes nor expires, and has no telemetry.
 */
#ifndef ONRAMP_HOST_SHELL_H
#define ONRAMP_HOST_SHELL_H

#include "view.h"
#include "../shell/ack.h"
#include "../shell/loss.h"

struct shell_flow {
	struct flow_header header;
	struct limits limits;
	u32 traits;
	u32 has_state;	/* 1: the flow has it */
	u32 grows_from; /* segments, between the two parts of a growth of the window */
	u32 grows_how;	/* enum shell_growth, likewise */
};

/* Bits of shell_flow.grows_how. */
enum shell_growth {
	SHELL_STARTING = 1 << 0, /* in slow start */
	SHELL_LIMITED = 1 << 1,	 /* by the last verdict */
};

/* What an ACK needs between the two parts. */
enum shell_ack {
	SHELL_RESTARTS = 1 << 0, /* the algorithm is restarted, first */
	SHELL_CALLS = 1 << 1,	 /* it is called, and its verdict applied */
	SHELL_STARTS = 1 << 2,	 /* the ACK is in slow start */
	SHELL_DRAINED = 1 << 3,	 /* the verdict is the shell's own, and is applied */
};

/* pkts_acked. */
static inline u32 shell_before_ack(struct shell_flow *flow, struct sock *sk, u32 acked, s32 rtt_us, struct ack *ack,
				   struct verdict *verdict)
{
	bool starting = starts_below_threshold(sk);
	u32 needs = starting ? SHELL_STARTS : 0;

	if (!is_called(sk, starting, flow->traits, false) || !(flow->has_state || needs_state(sk)))
		return 0;
	if (!flow->has_state)
		needs |= SHELL_RESTARTS;
	flow->has_state = 1;
	describe(sk, acked, rtt_us, ack);
	*verdict = (struct verdict){ 0 };
	if (starting && slow_start_begins(&flow->header, ack)) {
		needs |= SHELL_RESTARTS;
		if (flow->header.flags & FLOW_EXITING) {
			end_drain(&flow->header, ack, verdict);
			return needs | SHELL_DRAINED;
		}
	}
	return needs | SHELL_CALLS;
}

static inline void shell_after_ack(struct shell_flow *flow, struct sock *sk, u32 needs, const struct ack *ack,
				   const struct verdict *verdict)
{
	if (needs & SHELL_STARTS)
		apply_verdict(sk, &flow->header, &flow->limits, ack, verdict, flow->traits);
	else
		apply_window(sk, &flow->header, &flow->limits, verdict, flow->traits);
}

/* cong_avoid; returns the segments for which the base may grow the window. 0: it is not called. */
static inline u32 shell_before_growth(struct shell_flow *flow, const struct sock *sk, u32 acked)
{
	struct growth_step step = growth_begins(sk);
	bool limited = growth_has_limits(step, flow->traits) && flow->limits.flags & LIMITS_GROWTH;

	flow->grows_from = step.before;
	flow->grows_how = (step.starting ? SHELL_STARTING : 0) | (limited ? SHELL_LIMITED : 0);
	return limited ? growth_allowed(&flow->limits, acked) : acked;
}

static inline void shell_after_growth(struct shell_flow *flow, struct sock *sk)
{
	struct growth_step step = { .before = flow->grows_from, .starting = flow->grows_how & SHELL_STARTING };
	struct ack ack;

	if (flow->grows_how & SHELL_LIMITED)
		limit_growth(sk, &flow->limits, step);
	if (!growth_reached_threshold(sk, step) || !flow->has_state || !(flow->header.flags & FLOW_SLOW_START))
		return;
	describe(sk, 0, NO_RTT, &ack);
	leave_at_threshold(sk, &flow->header, &flow->limits, &ack);
}

/* ssthresh; whether the algorithm answers it. */
static inline bool shell_before_loss(struct shell_flow *flow, const struct sock *sk, struct ack *ack)
{
	describe(sk, 0, NO_RTT, ack);
	if (flow->header.flags & FLOW_SLOW_START)
		return true;
	reduced_again(&flow->header);
	return false;
}

/* It has. */
static inline void shell_after_loss(struct shell_flow *flow, struct sock *sk, const struct ack *ack, u32 ssthresh)
{
	record_loss(&flow->header, ack);
	finish_exit(sk, &flow->header, &flow->limits, ssthresh);
}

/* set_state. */
static inline void shell_state(struct shell_flow *flow, const struct sock *sk, u32 new_state)
{
	name_reduction(sk, &flow->header, new_state);
	if (new_state == STATE_LOSS)
		slow_start_ends(&flow->header);
}

/* cwnd_event: the window is reduced after an idle time. */
static inline void shell_idle(struct shell_flow *flow)
{
	slow_start_ends(&flow->header);
}

/* undo_cwnd; the base would restore `window`. */
static inline u32 shell_undo(struct shell_flow *flow, const struct sock *sk, u32 window)
{
	undo(sk, &flow->header, &window);
	return window;
}

/* min_tso_segs. */
static inline void shell_pace(struct shell_flow *flow, struct sock *sk)
{
	if (flow->traits & TRAIT_PACES && view_paced(sk))
		pace(sk, &flow->limits);
}

#endif
