/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Sleep: the ACKs in slow start of which an algorithm with TRAIT_SLEEPS has said that none changes its state, and that each
 * gets the verdict that the last one got, which wants nothing. The shell counts them, and neither looks up the flow nor
 * calls the algorithm.
 *
 *	          a verdict that wants nothing
 *	awake ───────────────────────────────────────► asleep
 *	  ▲   until time or window has come; loss, state, undo, idle restart, threshold;
 *	  └── parameters change, a consumer subscribes, a deadline is set ◄──┘
 *
 * Who has to act on each ACK does not sleep: a flow that starts from memory or faster, that is paced or drained, or has a
 * consumer; nor any flow of an attachment with a deadline or a guard, that observes, or over BBR.
 */
#ifndef ONRAMP_SHELL_SLEEP_H
#define ONRAMP_SHELL_SLEEP_H

#include "entry.h"

/* Of a flow. */
struct sleep {
	u64 until;	   /* of what the algorithm sleeps by; 0: awake */
	u32 registrations; /* struct telemetry.registrations with the newest ACK that was not slept through */
	u32 uncounted; /* verdicts that are not counted yet: in the lowest byte the outcome of each, above it their number */
};

#define VERDICT_ONE (1U << 8)
/* As many are counted. */
#define UNCOUNTED_MAX (~0U - VERDICT_ONE)

/* Whether it sleeps by its own word. An ACK without an RTT sample wakes who sleeps by time. */
static __always_inline bool sleep_lasts(const struct sock *sk, const struct sleep *sleep, s32 rtt_us, u32 traits)
{
	if (traits & TRAIT_SLEEPS_BY_WINDOW)
		return (u64)view_cwnd(sk) * view_mss(sk) < sleep->until;
	return view_now_us(sk) < sleep->until && rtt_us >= 0;
}

/* After a verdict: whether the shell has nothing to do either if there are more like it. */
static __always_inline bool may_sleep(const struct shell *shell, const struct ack_step *step,
				      const struct ack_payload *payload)
{
	const u32 busy = FLOW_EXITING | FLOW_STARTS | FLOW_FASTER;
	const struct verdict *verdict = &payload->verdict;

	return step->starting && payload->called && !shell->telemetry && verdict->outcome != OUTCOME_EXIT &&
	       verdict->growth == GROWTH_BASE && !verdict->cwnd && !verdict->ssthresh && !verdict->pacing_rate &&
	       !verdict->undo_limit && (shell->flow->flags & (FLOW_SLOW_START | busy)) == FLOW_SLOW_START &&
	       !shell->limits->flags && !shell->limits->pacing_rate;
}

#endif
