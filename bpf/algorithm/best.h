/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * best: Bandwidth Estimate Slow start.
 *
 * Pairs of ACKs tell the rate of the bottleneck (ack_pairs.h). When a round ends, the median of its rates times the RTT
 * is the bandwidth-delay product, and that becomes the slow start threshold: ahead of the window it is where slow start
 * will end, at or below it slow start ends at once. A median that is not above min_rate is none: in the first rounds
 * a satellite's return link spaces the ACKs, not the bottleneck. Nor is one of fewer than pairs_min pairs.
 *
 *	round open ──► round over ──► few pairs, or median <= min_rate: dropped
 *	    ▲                     ├─► median x RTT >  window: aimed, the next round estimates anew
 *	    └─────────────────────┴─► median x RTT <= window: exit
 *
 * Source: Ataei Kachooei et al. 2022, figure 10. What differs from it:
 *
 *  1. The rates of a round are kept in a histogram (rate_sketch.h), not one by one: the median is right within 2.7 %,
 *     and of a round of more than 65,535 pairs the first count. Of an even number it is the lower one of the two.
 *  2. min_rate is 1 MB/s unless set, as the text has it; the pseudocode has 0.
 *  3. Every round starts with no rates, also after one that set a threshold, where the pseudocode clears them only if
 *     there was none. So each estimate is of one round, and later rounds correct it until the window has reached it.
 *  4. ACKs that acknowledge nothing new, ACKs of the same microsecond, and gaps made by the sender are no pairs
 *     (ack_pairs.h); the pseudocode divides by their time and counts all.
 *  5. "RTT" is the minimum RTT unless set (rtt_source), so that the threshold is the product of an empty path.
 *  6. A threshold that is in force and not this algorithm's (after a timeout, or remembered from an earlier
 *     connection) is lowered, never raised.
 *  7. The threshold is at least ten segments.
 *  8. A round may have to have a least number of pairs (pairs_min; 1 as published). With pair_min_us a short round has
 *     few, and they tell how fast the sender was.
 */
#ifndef ONRAMP_BEST_H
#define ONRAMP_BEST_H

#include "ack_pairs.h"
#include "aim.h"
#include "algorithm.h"
#include "pacing.h"

enum best_rtt_source { BEST_MINIMUM, BEST_ROUND_MINIMUM, BEST_LATEST };

#define BEST_CONTROL "onramp_best"
#define BEST_PARAMETERS(X)                                                                                             \
	X(min_rate, "bytes/s", 1000000, 0, 17179869184, "", "median that a round must exceed to be an estimate")       \
	X(pairs_min, "pairs", 1, 1, 65535, "", "ACK pairs that a round must have to be an estimate")                   \
	X(rtt_source, "", BEST_MINIMUM, 0, 2, "min|round_min|latest",                                                  \
	  "RTT that the median is multiplied by: the connection's minimum, the round's minimum, the latest")           \
	X(cut_to_bdp, "", 0, 0, 1, "off|on", "reduce the window to the threshold where it has passed it")              \
	PACING_PARAMETERS(X)                                                                                           \
	ACK_PAIRS_PARAMETERS(X)

enum best_outcome {
	BEST_ROUND_OPEN = OUTCOME_OWN,
	BEST_FEW_PAIRS,
	BEST_RATE_TOO_LOW,
	BEST_AIMED,
	BEST_THRESHOLD_KEPT,
};

#define BEST_OUTCOMES(X)                                                                                               \
	X(BEST_ROUND_OPEN, round_open, "the round is not over")                                                        \
	X(BEST_FEW_PAIRS, few_pairs, "the round had fewer ACK pairs than pairs_min: dropped")                          \
	X(BEST_RATE_TOO_LOW, rate_too_low, "the round's median is not above min_rate: dropped")                        \
	X(BEST_AIMED, aimed, "the threshold is set, ahead of the window")                                              \
	X(BEST_THRESHOLD_KEPT, threshold_kept, "a lower threshold is in force that is not this algorithm's")

struct best {
	struct ack_pairs pairs;
	struct pacing pacing;
	u32 estimate;	   /* kB/s, median of the round that ended last; 0: none */
	u32 round_samples; /* pairs of that round */
	u32 min_rtt_us;	   /* the connection's, when that round ended */
	u32 round_rtt_us;  /* minimum of that round */
	u32 open_rtt_us;   /* minimum of the round under way; 0: no sample yet */
	u32 target;	   /* threshold that was set last, segments; 0: none */
};

#define BEST_EXPORTS(X)                                                                                                \
	X(best, estimate, "kB/s", 1, "median rate of the round that ended last")                                       \
	X(best, round_samples, "pairs", 1, "ACK pairs of that round")                                                  \
	X(best, pairs.rounds, "rounds", 1, "rounds that have ended since slow start began")                            \
	X(best, min_rtt_us, "us", 1, "minimum RTT of the connection when that round ended")                            \
	X(best, round_rtt_us, "us", 1, "minimum RTT of that round")                                                    \
	X(best, target, "segments", 1, "threshold that was set last")                                                  \
	X(best, pairs.sketch.samples, "pairs", 1, "ACK pairs in the histogram: of the round under way, or just over")  \
	X(best, pairs.sketch.histogram, "pairs", RATE_SKETCH_BINS / 2,                                                 \
	  "their rates, two bins of 16 bits each, the lower rate in the lower half; 18 bins an octave from 1024 "      \
	  "bytes/s")

#define BEST_TRAITS TRAIT_PACES

struct best_params {
	BEST_PARAMETERS(PARAMETER_FIELD)
};

/* Keeps rate times RTT within 64 bits; 17 minutes. */
#define BEST_RTT_MAX_US (1U << 29)

static __always_inline void best_restart(struct best *state)
{
	ack_pairs_restart(&state->pairs);
	pacing_restart(&state->pacing);
	state->open_rtt_us = 0;
	state->target = 0;
}

LOSS_LEFT_TO_BASE(best)

/* The RTT to multiply by, at least 1 us; 0: none known. */
static __always_inline u32 best_rtt(const struct best *state, const struct best_params *params, const struct ack *ack)
{
	if (params->rtt_source == BEST_ROUND_MINIMUM)
		return state->round_rtt_us;
	if (params->rtt_source == BEST_LATEST)
		return ack->rtt_us >= 0 ? (u32)max_u64((u32)ack->rtt_us, 1) : ack->smoothed_rtt_us;
	return ack->min_rtt_us;
}

/* Notes the minimum RTT of the round under way, in which 0 us count as 1. */
static __always_inline void best_note_rtt(struct best *state, const struct ack *ack)
{
	u32 rtt_us;

	if (ack->rtt_us < 0)
		return;
	rtt_us = ack->rtt_us ? (u32)ack->rtt_us : 1;
	if (!state->open_rtt_us || rtt_us < state->open_rtt_us)
		state->open_rtt_us = rtt_us;
}

/* Closes the books of a round: its median, bytes per second. */
static __always_inline u64 best_close_round(struct best *state, const struct ack *ack)
{
	u64 rate = ack_pairs_median(&state->pairs);

	state->estimate = (u32)(rate / 1000);
	state->round_samples = ack_pairs_samples(&state->pairs);
	state->min_rtt_us = ack->min_rtt_us;
	state->round_rtt_us = state->open_rtt_us;
	state->open_rtt_us = 0;
	return rate;
}

/* Sets the threshold to rate times RTT (Ataei Kachooei et al. 2022: when RTT round ends). */
static __always_inline void best_aim(struct best *state, const struct best_params *params, const struct ack *ack,
				     u64 rate, u32 rtt_us, struct verdict *verdict)
{
	u64 bytes = rate * (u32)min_u64(rtt_us, BEST_RTT_MAX_US) / 1000000;
	u64 segments = bytes / (ack->mss ? ack->mss : 1);

	verdict->outcome = aim(&state->target, segments, BEST_AIMED, BEST_THRESHOLD_KEPT, ack, verdict);
	if (params->cut_to_bdp && verdict->outcome == OUTCOME_EXIT && state->target < ack->cwnd)
		verdict->cwnd = state->target;
}

static __always_inline void best_judge(struct best *state, const struct best_params *params, const struct ack *ack,
				       struct verdict *verdict)
{
	bool first = !state->pairs.begun;
	u32 rtt_us;
	u64 rate;

	if (!ack_pairs_on_ack(&state->pairs, ack, params->pair_min_us)) {
		best_note_rtt(state, ack);
		verdict->outcome = first			  ? OUTCOME_WARMING_UP
				   : ack->flags & ACK_APP_LIMITED ? OUTCOME_APP_LIMITED
								  : BEST_ROUND_OPEN;
		return;
	}
	rate = best_close_round(state, ack);
	pacing_round(&state->pacing, rate, params->min_rate, ack);
	best_note_rtt(state, ack);
	rtt_us = best_rtt(state, params, ack);
	if (state->round_samples < params->pairs_min)
		verdict->outcome = BEST_FEW_PAIRS;
	else if (rate <= params->min_rate)
		verdict->outcome = BEST_RATE_TOO_LOW;
	else if (!rtt_us)
		verdict->outcome = OUTCOME_NO_RTT_SAMPLE;
	else
		best_aim(state, params, ack, rate, rtt_us, verdict);
}

static __always_inline void best_on_ack(struct best *state, const struct best_params *params, const struct ack *ack,
					struct verdict *verdict)
{
	best_judge(state, params, ack, verdict);
	if (params->pacing)
		verdict->pacing_rate = pacing_rate(&state->pacing, params->pacing_gain_pct, ack);
}

#endif
