/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Life of a flow. It has state from the first ACK on that finds more given to send than an initial window holds. Nine of
 * ten connections of a server never get there.
 *
 *	initial window ──► slow start ──ssthresh (loss, ECN, timeout)──► reduced ──undo──► slow start goes on
 *	                    │  ▲                                          │
 *	               verdict or threshold                          timeout, idle: slow start anew
 *	                    ▼                                             ▼
 *	              congestion avoidance (the base) ◄───────────────────┘
 */
#ifndef ONRAMP_SHELL_LIFE_H
#define ONRAMP_SHELL_LIFE_H

#include "verdict.h"

/* Bytes of an initial window. */
static __always_inline u64 initial_window_bytes(const struct sock *sk)
{
	return (u64)INITIAL_WINDOW * view_mss(sk);
}

/* Whether the application has given more to send, so far, than an initial window holds: the flow needs state. */
static __always_inline bool needs_state(const struct sock *sk)
{
	return view_bytes_sent(sk) + view_bytes_unsent(sk) > initial_window_bytes(sk);
}

/*
 * Whether a connection that comes to this control is past its start. One that has sent no more than its initial window is
 * at its start; for any other, a threshold that its previous control never set must not start it anew.
 */
static __always_inline bool is_adopted(const struct sock *sk)
{
	return view_bytes_transmitted(sk) > initial_window_bytes(sk);
}

/* It is, and has its state. Where its window has hardly grown, as after small requests, it may still have to start. */
static __always_inline void adopt(struct sock *sk, struct flow_header *flow, struct limits *limits)
{
	flow->flags = (flow->flags & ~(FLOW_STARTS | FLOW_FASTER)) | FLOW_ADOPTED;
	expect_filled(sk, limits);
	base_past_start(sk);
}

/* The attachment's time is over: nothing that the algorithm set goes on. The state stays, in case the deadline is lifted. */
static __always_inline void suspend(struct sock *sk, struct flow_header *flow, struct limits *limits)
{
	flow->flags &= ~(FLOW_SLOW_START | FLOW_EXITING | FLOW_SSTHRESH_SET);
	limits->flags &= ~LIMITS_GROWTH;
	end_pacing(sk, limits);
}

/* Whether the algorithm is called on an ACK; `starting`: in slow start. */
static __always_inline bool is_called(const struct sock *sk, bool starting, u32 traits, bool observing)
{
	return starting || (traits & TRAIT_ALWAYS && !observing && !in_recovery(sk));
}

/* Slow start begins with an ACK, and the algorithm has to be restarted. */
static __always_inline void begin_slow_start(const struct sock *sk, struct flow_header *flow, s32 rtt_us)
{
	if (!(flow->flags & FLOW_STARTED)) {
		flow->flags |= FLOW_STARTED;
		flow->start_us = view_now_us(sk) - (rtt_us > 0 ? (u32)rtt_us : view_srtt_eighths_us(sk) >> 3);
	}
	flow->flags |= FLOW_SLOW_START;
	flow->flags &= ~FLOW_OBSERVED;
	if (flow->slow_starts < 0xffff)
		flow->slow_starts++;
}

/* A loss interrupted the drain and was undone: the exit stands, the drain is over. The algorithm is not called. */
static __always_inline void end_drain(const struct sock *sk, const struct flow_header *flow, struct verdict *verdict)
{
	verdict->ssthresh = flow->undo_limit;
	verdict->cwnd = (u32)min_u64(view_cwnd(sk), flow->undo_limit);
}

#endif
