/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What a verdict does to the window, the threshold, growth and pacing. */
#ifndef ONRAMP_SHELL_VERDICT_H
#define ONRAMP_SHELL_VERDICT_H

#include "after.h"
#include "exit.h"

static __always_inline u32 bounded_window(const struct sock *sk, u32 window)
{
	return (u32)min_u64(max_u64(window, MIN_WINDOW), view_cwnd_clamp(sk));
}

/* What holds outside slow start, too, as far as an algorithm with these traits answers it. */
static __always_inline void apply_window(struct sock *sk, struct flow_header *flow, struct limits *limits,
					 const struct verdict *verdict, u32 traits)
{
	if (traits & TRAIT_LIMITS_GROWTH) {
		/* Of a phase in which the window is held. */
		flow->undo_limit = verdict->undo_limit;
		if (verdict->growth == GROWTH_LIMITED) {
			/* No ACK is of more segments. */
			limits->growth = (u16)min_u64(verdict->growth_limit, 0xffff);
			limits->flags |= LIMITS_GROWTH;
		} else {
			limits->flags &= ~LIMITS_GROWTH;
		}
	}
	if (traits & TRAIT_PACES) {
		if (verdict->pacing_rate)
			pace_at(sk, limits, verdict->pacing_rate);
		else
			end_pacing_once_sent(sk, limits);
	}
	if (verdict->cwnd)
		set_cwnd(sk, bounded_window(sk, verdict->cwnd));
}

/* A verdict on an ACK in slow start; not where the algorithm only observes. */
static __always_inline void apply_verdict(struct sock *sk, struct flow_header *flow, struct limits *limits,
					  const struct ack *ack, const struct verdict *verdict, u32 traits)
{
	if (verdict->outcome == OUTCOME_EXIT) {
		record_exit(flow, ack, EXIT_ALGORITHM);
		flow->flags |= FLOW_EXITING;
	}
	apply_window(sk, flow, limits, verdict, traits);
	if (verdict->ssthresh) {
		flow->flags |= FLOW_SSTHRESH_SET;
		set_ssthresh(sk, (u32)max_u64(verdict->ssthresh, MIN_WINDOW));
		if (view_cwnd(sk) >= view_ssthresh(sk)) {
			after_own_exit(sk);
			finish_exit(sk, flow, limits, view_cwnd(sk));
		}
	}
}

/* One growth of the window by the base. */
struct growth_step {
	u32 before;   /* window, segments */
	u32 starting; /* 1: it is below the threshold */
};

static __always_inline struct growth_step growth_begins(const struct sock *sk)
{
	return (struct growth_step){ .before = view_cwnd(sk), .starting = is_below_threshold(sk) };
}

/* Whether the last verdict may limit it. */
static __always_inline bool growth_has_limits(struct growth_step step, u32 traits)
{
	return traits & TRAIT_LIMITS_GROWTH && (step.starting || traits & TRAIT_ALWAYS);
}

/* Segments for which the base may grow the window, of `acked`. */
static __always_inline u32 growth_allowed(const struct limits *limits, u32 acked)
{
	return (u32)min_u64(acked, limits->growth);
}

/* Takes back what exceeds the limit. */
static __always_inline void limit_growth(struct sock *sk, const struct limits *limits, struct growth_step step)
{
	u64 limit = (u64)step.before + limits->growth;

	if (view_cwnd(sk) > limit)
		set_cwnd(sk, (u32)limit);
}

/* Whether it has brought the window to the threshold. */
static __always_inline bool growth_reached_threshold(const struct sock *sk, struct growth_step step)
{
	return step.starting && !is_below_threshold(sk);
}

/* The window has grown to a threshold that was set before this slow start, or above the window by the algorithm. */
static __always_inline void leave_at_threshold(struct sock *sk, struct flow_header *flow, struct limits *limits,
					       const struct ack *ack)
{
	u32 reason = threshold_reason(flow);

	if (reason == EXIT_ALGORITHM)
		after_own_exit(sk);
	record_exit(flow, ack, reason);
	finish_exit(sk, flow, limits, ack->cwnd);
}

#endif
