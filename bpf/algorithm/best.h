/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * best: Bandwidth Estimate Slow start.
 *
 * Pairs of ACKs show the rate of the bottleneck (ack_pairs.h). When a round ends, or earlier where half of it shows
 * enough, that rate times the RTT is the bandwidth-delay product, and that is aimed at: slow start ends when the window
 * reaches it, or at once where it has passed it. A rate that is not above the minimum is none: in the first rounds a
 * satellite's return link spaces the ACKs, not the bottleneck.
 *
 *	round open ──► round over ──► too coarse, sent no faster than acknowledged, not settled, or <= the minimum
 *	    ▲                     └─► rate x RTT is aimed at, and the next round estimates anew
 *	    └─────────────────────────────┘        window >= rate x RTT: exit
 *
 * Source: Ataei Kachooei et al. 2022, figure 10. What differs from it:
 *
 *  1. Pairs are a sixteenth of a round long and begin and end where ACKs pause, where the document pairs each ACK with
 *     the next; and of their rates the middle half is averaged, where it takes the median (ack_pairs.h). Jitter and
 *     batches of ACKs on the way back, which it does not speak of, would decide the median of single ACKs.
 *  2. min_rate_bytes_per_s is 1 MB/s unless set, as the text has it; the pseudocode has 0.
 *  3. Every round starts with no rates, also after one that set a threshold, where the pseudocode clears them only if
 *     there was none. So each estimate is of one round, and later rounds correct it until the window has reached it.
 *  4. ACKs that acknowledge nothing new and gaps made by the sender are no pairs, and rounds that were paced by the
 *     sender, or that the round before does not agree with, no estimates.
 *  5. "RTT" is the minimum RTT unless set (rtt_source), so that the threshold is the product of an empty path.
 *  6. The threshold is set when the window is about to reach it (aim.h). One that is in force and not this algorithm's
 *     (after a timeout, or remembered from an earlier connection) is lowered, never raised.
 *  7. The threshold is at least ten segments.
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
	X(min_rate_bytes_per_s, "bytes/s", 1000000, 0, 17179869184, "",                                                \
	  "rate that a round must exceed to be an estimate")                                                           \
	X(rtt_source, "", BEST_MINIMUM, 0, 2, "min|round_min|latest",                                                  \
	  "RTT that the rate is multiplied by: the connection's minimum, the round's minimum, the latest")             \
	X(cut_to_bdp, "", 0, 0, 1, "off|on", "reduce the window to the threshold where it has passed it")              \
	PACING_PARAMETERS(X)

enum best_outcome {
	BEST_ROUND_OPEN = OUTCOME_OWN,
	BEST_COARSE,
	BEST_SENDER_LIMITED,
	BEST_UNSETTLED,
	BEST_RATE_TOO_LOW,
	BEST_SSTHRESH_SET,
	BEST_THRESHOLD_KEPT,
};

#define BEST_OUTCOMES(X)                                                                                               \
	X(BEST_ROUND_OPEN, round_open, "the round is not over")                                                        \
	X(BEST_COARSE, coarse, "the round's ACKs show no rate: no estimate, also not the last")                        \
	X(BEST_SENDER_LIMITED, sender_limited, "the round was sent no faster than it was acknowledged: no estimate")   \
	X(BEST_UNSETTLED, unsettled, "the previous round showed another rate: no estimate, also not the last")         \
	X(BEST_RATE_TOO_LOW, rate_too_low, "the round's rate is not above min_rate_bytes_per_s: no estimate")          \
	X(BEST_SSTHRESH_SET, ssthresh_set, "the window at which slow start will be left is estimated anew")            \
	X(BEST_THRESHOLD_KEPT, threshold_kept, "a lower threshold is in force that is not this algorithm's")

struct best {
	struct ack_pairs pairs;
	struct pacing pacing;
	u32 estimate;	  /* kB/s, by the newest round with a result, the current or the previous one; 0: none */
	u32 round_rtt_us; /* minimum of that round, as far as it had come */
	u32 open_rtt_us;  /* minimum of the current round; 0: no sample yet */
	u32 target;	  /* window at which to leave, segments; 0: none */
};

_Static_assert(sizeof(struct best) <= 160, "the state of a flow grows");

#define BEST_EXPORTS(X)                                                                                                \
	X(best, estimate, "kB/s", 1, "rate by the newest round that showed one")                                       \
	X(best, pairs.rounds, "rounds", 1, "rounds that have ended since slow start began")                            \
	X(best, round_rtt_us, "us", 1, "minimum RTT of that round")                                                    \
	X(best, target, "segments", 1, "window at which slow start is to be left")                                     \
	X(best, pairs.pairs, "ps/byte", ACK_PAIRS_MAX, "ACK pairs of the current round; all ones: not there yet")

#define BEST_TRACK(X) TRACK_WINDOW(X, "exit window", state->target)
#define BEST_PICTURE(GAUGE, BARS, PHASE) BARS("rates of ACK pairs", "bit/s", ack_pairs_rates(&state->pairs, bars))

#define BEST_TRAITS TRAIT_PACES
#define BEST_READS (ACK_PAIRS_READS | AIM_READS | PACING_READS | READS(smoothed_rtt_us))

struct best_params {
	BEST_PARAMETERS(PARAMETER_FIELD)
};

/* Keeps rate times RTT within 64 bits; 9 minutes. */
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

/* Notes the minimum RTT of the current round, in which 0 us count as 1. */
static __always_inline void best_note_rtt(struct best *state, const struct ack *ack)
{
	u32 rtt_us;

	if (ack->rtt_us < 0)
		return;
	rtt_us = ack->rtt_us ? (u32)ack->rtt_us : 1;
	if (!state->open_rtt_us || rtt_us < state->open_rtt_us)
		state->open_rtt_us = rtt_us;
}

/* Closes the books of a round, or opens them for a look: its rate, bytes per second. */
static __always_inline u64 best_look(struct best *state, bool over)
{
	u64 rate = ack_pairs_rate(&state->pairs);

	state->estimate = (u32)(rate / 1000);
	state->round_rtt_us = state->open_rtt_us;
	if (over)
		state->open_rtt_us = 0;
	return rate;
}

/* Aims at rate times RTT (Ataei Kachooei et al. 2022: when RTT round ends). */
static __always_inline u32 best_aim(struct best *state, const struct ack *ack, u64 rate, u32 rtt_us)
{
	u64 bytes = rate * (u32)min_u64(rtt_us, BEST_RTT_MAX_US) / 1000000;
	u64 segments = bytes / ack_mss(ack);

	return aim(&state->target, segments, BEST_SSTHRESH_SET, BEST_THRESHOLD_KEPT, ack);
}

/* What news of a round leads to: the outcome. What spaces by the estimate has the last word on what it is. */
static __always_inline u32 best_evaluate(struct best *state, const struct best_params *params, const struct ack *ack,
					 bool over)
{
	u64 rate = best_look(state, over);
	u32 result = state->pairs.result;
	u32 rtt_us = best_rtt(state, params, ack);

	if (params->pacing) {
		pacing_round(&state->pacing, rate, result == ACK_PAIRS_SETTLED, over, params->min_rate_bytes_per_s);
		if (state->pacing.paced) {
			rate = pacing_estimate(&state->pacing);
			result = ACK_PAIRS_SETTLED;
		}
	}
	if (result == ACK_PAIRS_COARSE) {
		state->target = 0;
		return BEST_COARSE;
	}
	if (rate <= params->min_rate_bytes_per_s)
		return BEST_RATE_TOO_LOW;
	if (result == ACK_PAIRS_SENDER_LIMITED)
		return BEST_SENDER_LIMITED;
	if (result == ACK_PAIRS_UNSETTLED) {
		state->target = 0;
		return BEST_UNSETTLED;
	}
	if (!rtt_us)
		return OUTCOME_NO_RTT_SAMPLE;
	return best_aim(state, ack, rate, rtt_us);
}

static __always_inline void best_on_ack(struct best *state, const struct best_params *params, const struct ack *ack,
					struct verdict *verdict)
{
	bool first = !state->pairs.begun;
	u32 news = ack_pairs_on_ack(&state->pairs, ack);

	if (news)
		verdict->outcome = best_evaluate(state, params, ack, news == ACK_PAIRS_OVER);
	else if (first)
		verdict->outcome = OUTCOME_WARMING_UP;
	else
		verdict->outcome = ack->flags & ACK_APP_LIMITED ? OUTCOME_APP_LIMITED : BEST_ROUND_OPEN;
	best_note_rtt(state, ack);
	if (params->pacing)
		verdict->pacing_rate = pacing_rate(&state->pacing, params->pacing_gain_pct, ack);
	if (!aim_reached(state->target, ack, verdict))
		return;
	verdict->outcome = OUTCOME_EXIT;
	if (params->cut_to_bdp && state->target < ack->cwnd)
		verdict->cwnd = state->target;
}

#endif
