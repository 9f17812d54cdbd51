/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * ramp: one slow start for paths that are not described.
 *
 *	       a rate, and window >= target / 8            window >= target
 *	blind ──────────────────────────────────► guided ──────────────────► exit
 *	  │                                          │
 *	  └──────────────────────────────────────────┴── two rounds begin with a queue: exit
 *
 *   - The estimate is the rate that the line of a round's ACKs shows (ack_line.h), by the receiver's clock where the
 *     way back bends it. Only a line that is long compared with its gaps is believed: where jitter and batches are as long
 *     as rounds, doubling on costs less than an estimate that is too low.
 *   - The target is what the path holds: estimate x (RTT without a queue + longest gap between ACKs + what the way back
 *     has added), times exit_pct.
 *   - Guided, what doubling sends is paced at 120 % of the estimate: the bottleneck's queue stays below a sixth of the
 *     window, and ACKs go on to show the rate.
 *   - Slow start ends when the window is at the target.
 *   - Whether there is an estimate or not, slow start ends when two rounds in a row began with a queue (queue.h); after
 *     the first the window grows by a quarter.
 *   - Of a large window one ACK in a 64th of a round is looked at, and those that a pause precedes (doze.h).
 *
 * Loss is answered by the base. The exit leaves the window as it is, and nothing in it that would keep CUBIC from finding
 * more: it has seen no loss, and grows by up to 5 % in a round trip.
 *
 * Source: this project (docs/algorithms/ramp.md, which has what else was tried). From others: the product of rate and
 * RTT as the threshold (Ataei Kachooei et al. 2022), spacing at the rate of the bottleneck (Barakat et al. 1999), rates
 * as the lesser of sending and delivery (draft-ietf-ccwg-bbr), the delay rule (Ha and Rhee 2011; RFC 9406).
 */
#ifndef ONRAMP_RAMP_H
#define ONRAMP_RAMP_H

#include "ack_line.h"
#include "aim.h"
#include "algorithm.h"
#include "pacing.h"
#include "queue.h"

#define RAMP_CONTROL "onramp_ramp"
#define RAMP_PARAMETERS(X) X(exit_pct, "percent", 110, 50, 400, "", "exit window, in hundredths of the BDP of the path")

enum ramp_outcome {
	RAMP_BLIND = OUTCOME_OWN,
	RAMP_GUIDED,
	RAMP_QUEUED,
};

#define RAMP_OUTCOMES(X)                                                                                               \
	X(RAMP_BLIND, blind, "no estimate yet, or the window is small compared with it: doubling")                     \
	X(RAMP_GUIDED, guided, "doubling, paced by the estimate")                                                      \
	X(RAMP_QUEUED, queued, "the round began with a queue: slower")

struct ramp {
	struct doze doze;
	struct ack_line line;
	struct queue queue;
	u32 estimate;	/* kB/s; 0: none */
	u32 target;	/* window at which to leave, segments; 0: none */
	u32 remainder;	/* segments acknowledged towards the next of slower growth */
	u32 guided;	/* whether the window has been an eighth of the target */
	u32 rate;	/* kB/s at which data leave; 0: as the host has it */
	u32 updated_at; /* bytes that the receiver had when the last two were made, modulo 2^32 */
};

#define RAMP_EXPORTS(X)                                                                                                \
	X(ramp, estimate, "kB/s", 1, "rate of the bottleneck in use")                                                  \
	X(ramp, target, "segments", 1, "window at which slow start is to be left")                                     \
	X(ramp, guided, "", 1, "whether what is sent is paced by the estimate")                                        \
	X(ramp, line.rounds, "rounds", 1, "rounds that have ended since slow start began")                             \
	X(ramp, queue.risen, "rounds", 1, "rounds in a row that began with a queue")                                   \
	X(ramp, queue.base_us, "us", 1, "RTT of the path without a queue, when ACKs had paused last; 0: not yet")

#define RAMP_TRACK(X) TRACK_WINDOW(X, "exit window", state->target)
#define RAMP_PICTURE(GAUGE, BARS, PHASE)

#define RAMP_TRAITS (TRAIT_PACES | TRAIT_LIMITS_GROWTH | TRAIT_DOZES)
#define RAMP_READS (ACK_LINE_READS | QUEUE_READS | PACING_READS)

struct ramp_params {
	RAMP_PARAMETERS(PARAMETER_FIELD)
};

/* Guided from this part of the target on, and the rate then, percent of the estimate. */
#define RAMP_GUIDED_PART 8
#define RAMP_GAIN_PCT 120
/*
 * Of the time in which data arrive, what they may have left in for their rate to be the path's, percent. Doubling takes half
 * of it, and more only where the sender was idle between bursts, as after a large initial window; guided takes 83 %.
 */
#define RAMP_SENT_PCT 80
#define RAMP_SENT_GUIDED_PCT 90
/* Segments acknowledged for one of slower growth. */
#define RAMP_SLOW 4
/* Rounds in a row that begin with a queue. */
#define RAMP_QUEUED_ROUNDS 2

static __always_inline void ramp_restart(struct ramp *state)
{
	doze_restart(&state->doze);
	ack_line_restart(&state->line);
	queue_restart(&state->queue);
	state->estimate = 0;
	state->target = 0;
	state->remainder = 0;
	state->guided = 0;
	state->rate = 0;
}

LOSS_LEFT_TO_BASE(ramp)

/* The longest gap between ACKs: of the round before, or of the current one. */
static __always_inline u32 ramp_gap(const struct ramp *state)
{
	return (u32)max_u64(state->line.gap_before_us, state->line.gap_us);
}

/*
 * Segments at which to leave, and whether what is sent is paced. Asked with every new estimate and round, and once in a 64th
 * of a round, in which the window grows by as much at most.
 */
__noinline int ramp_aim(struct ramp *state, const struct ramp_params *params, const struct ack *ack)
{
	u64 rtt_us, bytes, target;

	if (!state || !params || !ack)
		return 0;
	rtt_us = queue_base(&state->queue, ack) + (u64)ramp_gap(state) + ack_line_return_us(&state->line, ack);
	rtt_us = min_u64(rtt_us, PACING_RTT_MAX_US);
	bytes = state->estimate * rtt_us / 1000;
	target = aim_window(bytes / ack_mss(ack) * params->exit_pct / 100);
	state->updated_at = received_bytes(ack);
	state->target = (u32)target;
	if ((u64)ack->cwnd * RAMP_GUIDED_PART >= target)
		state->guided = 1;
	return 0;
}

/* Looks at an ACK: the estimate, whether the round began with a queue, and what follows of both. */
static __always_inline void ramp_looks(struct ramp *state, const struct ramp_params *params, const struct ack *ack)
{
	u32 most_sent_pct = state->guided ? RAMP_SENT_GUIDED_PCT : RAMP_SENT_PCT;
	u32 rate = ack_line_on_ack(&state->line, &state->doze, ack, most_sent_pct);
	bool evaluated = queue_wants(&state->queue, &state->doze, ack) &&
			 queue_add(&state->queue, ack, ack_line_return_us(&state->line, ack));

	if (evaluated)
		queue_evaluate(&state->queue, ack);
	if (rate)
		state->estimate = rate;
	if (state->estimate && (evaluated || rate || ack_line_further(&state->line, ack, state->updated_at)))
		ramp_aim(state, params, ack);
	if (state->guided)
		state->rate = (u32)((u64)state->estimate * RAMP_GAIN_PCT / 100);
	else
		state->rate = (u32)((pacing_young(ack) + 999) / 1000);
	doze_looks(&state->doze, ack);
}

/* For how long the verdict stays as it is, where a window is large enough. */
static __always_inline void ramp_dozes(struct ramp *state, const struct ack *ack)
{
	u32 step = ack_line_step(&state->line);

	if (step < 2 * ack_mss(ack))
		return;
	ack_line_dozes(&state->line, &state->doze, ack);
	queue_dozes(&state->queue, &state->doze, ack);
	if (state->estimate)
		doze_at_most(&state->doze, ack, step - (received_bytes(ack) - state->updated_at));
	if (state->guided)
		doze_at_most(&state->doze, ack, (u64)(state->target - ack->cwnd) * ack_mss(ack));
}

static __always_inline void ramp_on_ack(struct ramp *state, const struct ramp_params *params, const struct ack *ack,
					struct verdict *verdict)
{
	bool passes = doze_passes_over(&state->doze, ack);

	if (!passes)
		ramp_looks(state, params, ack);
	verdict->outcome = state->guided ? RAMP_GUIDED : RAMP_BLIND;
	verdict->pacing_rate = (u64)state->rate * 1000;
	if (passes)
		return;
	if (state->guided && ack->cwnd >= state->target) {
		verdict->outcome = OUTCOME_EXIT;
		verdict->ssthresh = state->target;
	} else if (state->queue.risen >= RAMP_QUEUED_ROUNDS) {
		verdict->outcome = OUTCOME_EXIT;
		verdict->ssthresh = ack->cwnd;
	} else if (state->queue.risen) {
		verdict->outcome = RAMP_QUEUED;
		grow_slower(verdict, &state->remainder, ack->acked, RAMP_SLOW);
	} else {
		ramp_dozes(state, ack);
	}
}

#endif
