/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The exit record: the first slow start of a flow, and how it ended. Later ones are counted, not recorded. */
#ifndef ONRAMP_SHELL_EXIT_H
#define ONRAMP_SHELL_EXIT_H

#include "../abi.h"
#include "base.h"
#include "pace.h"

static __always_inline void fill_record(struct exit_record *record, u64 start_us, const struct ack *ack, u32 reason)
{
	record->reason = (u8)reason;
	record->at_us = ack->now_us - start_us;
	record->bytes_acked = ack->bytes_acked;
	record->window = ack->cwnd;
	record->in_flight = ack->in_flight;
	record->mss = (u16)ack->mss;
	record->rtt_us = ack->rtt_us >= 0 ? (u32)ack->rtt_us : ack->smoothed_rtt_us;
	record->min_rtt_us = ack->min_rtt_us;
}

/* Slow start ends, or will once the drain is done. */
static __always_inline void record_exit(struct flow_header *flow, const struct ack *ack, u32 reason)
{
	if (flow->exit.reason != EXIT_NONE)
		return;
	fill_record(&flow->exit, flow->start_us, ack, reason);
	flow->exit.window_after = 0;
}

/* Slow start is over, at a window. */
static __always_inline void finish_exit(struct sock *sk, struct flow_header *flow, struct limits *limits, u32 window)
{
	flow->flags &= ~(FLOW_SLOW_START | FLOW_EXITING | FLOW_SSTHRESH_SET);
	limits->flags &= ~LIMITS_GROWTH;
	limits->pacing_rate = 0;
	base_left(sk);
	expect_filled(sk, limits);
	if (flow->exit.reason != EXIT_NONE && !flow->exit.window_after) {
		flow->exit.window_after = window;
		flow->flags |= FLOW_EXIT_UNREPORTED;
	}
}

/*
 * Whose threshold the window has reached. One that neither the algorithm nor a reduction has set since the connection began
 * is that of an earlier connection to the same peer (tcp_metrics), or of its route.
 */
static __always_inline u32 threshold_reason(const struct flow_header *flow)
{
	if (flow->flags & FLOW_SSTHRESH_SET)
		return EXIT_ALGORITHM;
	return flow->flags & FLOW_ADOPTED || flow->slow_starts > 1 ? EXIT_SSTHRESH : EXIT_CACHED_SSTHRESH;
}

/* What reduced the window without a loss. */
static __always_inline u32 mark_reason(const struct sock *sk)
{
	return view_ecn(sk) ? EXIT_ECN : EXIT_LOCAL;
}

/* The algorithm would have left this slow start. The first time is recorded. */
static __always_inline void record_observed(struct flow_header *flow, struct exit_record *observed,
					    const struct ack *ack)
{
	flow->flags |= FLOW_OBSERVED;
	if (observed->reason == EXIT_NONE)
		fill_record(observed, flow->start_us, ack, EXIT_ALGORITHM);
}

/* Attached to observe: whether the algorithm is called on an ACK in slow start, which it is until it would have left. */
static __always_inline bool observed_before(struct flow_header *flow, struct exit_record *observed,
					    const struct ack *ack)
{
	if (flow->flags & FLOW_OBSERVED)
		return false;
	if (!observed->window_after || observed->reason != EXIT_NONE || ack->cwnd < observed->window_after)
		return true;
	record_observed(flow, observed, ack);
	return false;
}

/* Notes what its verdict wants, and does nothing of it. */
static __always_inline void observed_after(struct flow_header *flow, struct exit_record *observed,
					   const struct ack *ack, const struct verdict *verdict)
{
	if (verdict->ssthresh && observed->reason == EXIT_NONE)
		observed->window_after = verdict->ssthresh;
	if (verdict->outcome == OUTCOME_EXIT || (verdict->ssthresh && verdict->ssthresh <= ack->cwnd))
		record_observed(flow, observed, ack);
}

#endif
