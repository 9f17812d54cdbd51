/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Sleep: the ACKs in slow start that an algorithm need not see. The shell counts them, and neither looks up the flow nor calls
 * the algorithm, which has said so:
 *
 *   - with TRAIT_SLEEPS: none of them changes its state, and each gets the verdict that the last one got, which wants nothing;
 *   - with TRAIT_DOZES: it would pass over them (algorithm/doze.h), and each gets the verdict that the last one got, which wants
 *     nothing but to be paced as it is. What it would keep of them is kept in the socket, where nothing else needs the room.
 *
 *	          a verdict that wants nothing
 *	awake ───────────────────────────────────────► asleep
 *	  ▲   until time, window or ACK has come; loss, state, undo, idle restart, threshold;
 *	  └── parameters change, a consumer subscribes, a deadline is set ◄──┘
 *
 * Who has to act on each ACK does not sleep: a flow that starts from memory or faster, that is drained, or has a
 * consumer; nor any flow of an attachment with a deadline or a guard, that observes, or over BBR.
 */
#ifndef ONRAMP_SHELL_SLEEP_H
#define ONRAMP_SHELL_SLEEP_H

#include "../algorithm/doze.h"
#include "entry.h"

/* Of a flow. */
struct sleep {
	union {
		u64 until; /* with TRAIT_SLEEPS, of what the algorithm sleeps by; 0: awake */
		struct {   /* with TRAIT_DOZES: of struct doze */
			u32 acked;
			u32 pause_us : 24; /* 0: awake */
			u32 ticks : 8;
		};
	};
	u16 registrations; /* struct telemetry.registrations modulo 2^16 with the newest ACK that was not slept through */
	u16 clock;	   /* of struct doze */
	u32 uncounted; /* verdicts that are not counted yet: in the lowest byte the outcome of each, above it their number */
};

#define VERDICT_ONE (1U << 8)
/* As many are counted. */
#define UNCOUNTED_MAX (~0U - VERDICT_ONE)

/* What a sleeping flow's algorithm would have kept by now. */
static __always_inline struct doze sleep_doze(const struct sleep *sleep, const struct limits *limits)
{
	return (struct doze){
		.acked = sleep->acked,
		.pause_us = sleep->pause_us,
		.ticks = sleep->ticks,
		.last_us = limits->filled_us,
		.last_rtt_us = limits->first_end,
		.last_clock = sleep->clock,
		.passed = limits->growth,
	};
}

static __always_inline void sleep_keeps(struct sleep *sleep, struct limits *limits, const struct doze *doze)
{
	sleep->acked = doze->acked;
	sleep->pause_us = doze->pause_us;
	sleep->ticks = doze->ticks;
	sleep->clock = doze->last_clock;
	limits->filled_us = doze->last_us;
	limits->first_end = doze->last_rtt_us;
	limits->growth = doze->passed;
}

/* Whether an algorithm that dozes passes over this ACK, which it has then. */
static __always_inline bool sleep_passes(const struct sock *sk, struct sleep *sleep, struct limits *limits, s32 rtt_us)
{
	struct doze doze = sleep_doze(sleep, limits);

	if (!view_in_order(sk) ||
	    !doze_passes(&doze, view_now_us(sk), (u32)view_bytes_acked(sk), rtt_us, view_receiver_clock(sk)))
		return false;
	sleep_keeps(sleep, limits, &doze);
	return true;
}

/* Whether it sleeps by its own word. An ACK without an RTT sample wakes who sleeps by time. */
static __always_inline bool sleep_lasts(const struct sock *sk, struct sleep *sleep, struct limits *limits, s32 rtt_us,
					u32 traits)
{
	if (traits & TRAIT_DOZES)
		return sleep_passes(sk, sleep, limits, rtt_us);
	if (traits & TRAIT_SLEEPS_BY_WINDOW)
		return (u64)view_cwnd(sk) * view_mss(sk) < sleep->until;
	return view_now_us(sk) < sleep->until && rtt_us >= 0;
}

/* Whether nothing is paced, or with TRAIT_DOZES as it has been. */
static __always_inline bool may_sleep_as_paced(const struct limits *limits, const struct verdict *verdict, u32 traits)
{
	if (verdict->pacing_rate)
		return traits & TRAIT_DOZES && !(limits->flags & ~LIMITS_PACED);
	return !limits->flags && !limits->pacing_rate;
}

/* After a verdict: whether the shell has nothing to do either if there are more like it. */
static __always_inline bool may_sleep(const struct shell *shell, const struct ack_step *step,
				      const struct ack_payload *payload)
{
	const u32 busy = FLOW_EXITING | FLOW_STARTS | FLOW_FASTER;
	const struct verdict *verdict = &payload->verdict;

	return step->starting && payload->called && !shell->telemetry && verdict->outcome != OUTCOME_EXIT &&
	       verdict->growth == GROWTH_BASE && !verdict->cwnd && !verdict->ssthresh && !verdict->undo_limit &&
	       (shell->flow->flags & (FLOW_SLOW_START | busy)) == FLOW_SLOW_START &&
	       may_sleep_as_paced(shell->limits, verdict, shell->traits);
}

#endif
