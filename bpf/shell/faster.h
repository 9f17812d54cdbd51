/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Starts that are faster than doubling (start/fast.h, start/suss.h): an attachment has one of them. It has its turn in the first
 * slow start, after each verdict of the algorithm, whose exit ends it.
 */
#ifndef ONRAMP_SHELL_FASTER_H
#define ONRAMP_SHELL_FASTER_H

#include "../start/resume.h"
#include "ack.h"
#include "life.h"
#include "verdict.h"

/* A flow gets its state, and does not start from memory. Where there is a threshold already, something is known of the path. */
static __always_inline void faster_begins(const struct sock *sk, struct flow_header *flow)
{
	if (view_ssthresh(sk) >= NO_THRESHOLD)
		flow->flags |= FLOW_FASTER;
}

/* Whether it has its turn. */
static __always_inline bool faster_goes_on(const struct flow_header *flow)
{
	return (flow->flags & (FLOW_SLOW_START | FLOW_EXITING)) == FLOW_SLOW_START && flow->slow_starts == 1;
}

/* What it wants; not the window where the algorithm limits growth. */
static __always_inline void faster_applies(struct sock *sk, struct limits *limits, const struct start_verdict *verdict)
{
	if (verdict->pacing_rate)
		pace_at(sk, limits, verdict->pacing_rate);
	if (verdict->cwnd && !(limits->flags & LIMITS_GROWTH))
		set_cwnd(sk, bounded_window(sk, verdict->cwnd));
}

#endif
