/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * spacing: slow start whose bursts leave at the rate of the bottleneck.
 *
 * Doubling releases two segments for each acknowledged, twice what the bottleneck takes, so its queue grows by half of
 * each burst: a queue of less than half the path overflows before the window holds the path. Spaced at the bottleneck's
 * rate the same segments build no queue, and the window still doubles in every round trip.
 *
 *	R = gain_pct of the rate that ACK pairs show (ack_pairs.h), by the policy of pacing.h
 *
 * Source: Barakat et al. 1999, second proposition: the first segments as ACKs release them, the rest at a rate R with
 * mu - lambda <= R < Rmax (equation 6), for which the available bandwidth, estimated from the ACKs, will do. What
 * differs from it:
 *
 *  1. The estimate is that of a round's ACK pairs, the middle ones averaged, where Barakat et al. 1999 average the
 *     ACKs.
 *  2. Nothing is paced before the window is an eighth of estimate x RTT, and from then on the estimate may only rise
 *     (pacing.h): what is paced by the sender shows no more than that.
 *  3. Leaving. Barakat et al. 1999 spaces until the threshold of the loss before, or a loss. A connection's first slow
 *     start has no such threshold, and pacing hides the queue that would show it. So the threshold is estimate x minimum
 *     RTT, as in Ataei Kachooei et al. 2022, estimated at the end of each round from when spacing begins (exit_pct, 0:
 *     as Barakat et al. 1999). The window stays as it is where the sender is already past it: that is the exit.
 *  4. Bursts are of the size that the kernel gives them at that rate: a millisecond's worth, at least two segments.
 *  5. What the window holds beyond what is in flight at the exit is let out at one window per RTT (shell/pace.h), not
 *     as one burst.
 */
#ifndef ONRAMP_SPACING_H
#define ONRAMP_SPACING_H

#include "ack_pairs.h"
#include "aim.h"
#include "algorithm.h"
#include "pacing.h"

#define SPACING_CONTROL "onramp_spacing"
#define SPACING_PARAMETERS(X)                                                                                          \
	X(rate_bytes_per_s, "bytes/s", 0, 0, 17179869184, "", "fixed rate R; 0: gain_pct of what ACK pairs show")      \
	X(gain_pct, "percent", 100, 100, 200, "", "R in hundredths of what ACK pairs show")                            \
	X(min_rate_bytes_per_s, "bytes/s", 1000000, 0, 17179869184, "",                                                \
	  "rate that a round must exceed to be an estimate")                                                           \
	X(exit_pct, "percent", 100, 0, 1000, "",                                                                       \
	  "threshold in hundredths of estimate x minimum RTT; 0: slow start ends by loss or an older threshold only")

enum spacing_outcome {
	SPACING_UNPACED = OUTCOME_OWN,
	SPACING_PACED,
	SPACING_SSTHRESH_SET,
	SPACING_THRESHOLD_KEPT,
};

#define SPACING_OUTCOMES(X)                                                                                            \
	X(SPACING_UNPACED, unpaced, "no estimate yet, or the window is small compared with it")                        \
	X(SPACING_PACED, paced, "what the ACK releases leaves at R")                                                   \
	X(SPACING_SSTHRESH_SET, ssthresh_set, "paced, and the window at which to leave is estimated")                  \
	X(SPACING_THRESHOLD_KEPT, threshold_kept, "paced; a lower threshold is in force that is not this algorithm's")

struct spacing {
	struct ack_pairs pairs;
	struct pacing pacing;
	u32 target; /* window at which to leave, segments; 0: none */
	u32 unused;
};

_Static_assert(sizeof(struct spacing) <= 152, "the state of a flow grows");

#define SPACING_EXPORTS(X)                                                                                             \
	X(spacing, pacing.estimate, "kB/s", 1, "rate of the bottleneck in use")                                        \
	X(spacing, pacing.paced, "", 1, "whether the window has been large enough for spacing")                        \
	X(spacing, pairs.rounds, "rounds", 1, "rounds that have ended since slow start began")                         \
	X(spacing, target, "segments", 1, "window at which slow start is to be left")

#define SPACING_TRACK(X) TRACK_WINDOW(X, "exit window", state->target)
#define SPACING_PICTURE(GAUGE, BARS, PHASE)

#define SPACING_TRAITS TRAIT_PACES
#define SPACING_READS (ACK_PAIRS_READS | AIM_READS | PACING_READS)

struct spacing_params {
	SPACING_PARAMETERS(PARAMETER_FIELD)
};

static __always_inline void spacing_restart(struct spacing *state)
{
	ack_pairs_restart(&state->pairs);
	pacing_restart(&state->pacing);
	state->target = 0;
}

LOSS_LEFT_TO_BASE(spacing)

/* Aims at what the path holds. */
static __always_inline u32 spacing_aim(struct spacing *state, const struct spacing_params *params,
				       const struct ack *ack)
{
	u64 bytes = pacing_path_bytes(pacing_estimate(&state->pacing), ack);
	u64 segments = bytes / ack_mss(ack) * params->exit_pct / 100;

	return aim(&state->target, segments, SPACING_SSTHRESH_SET, SPACING_THRESHOLD_KEPT, ack);
}

static __always_inline void spacing_on_ack(struct spacing *state, const struct spacing_params *params,
					   const struct ack *ack, struct verdict *verdict)
{
	u32 news = ack_pairs_on_ack(&state->pairs, ack);
	bool settled = state->pairs.result == ACK_PAIRS_SETTLED;

	if (params->rate_bytes_per_s) {
		verdict->pacing_rate = params->rate_bytes_per_s;
		verdict->outcome = SPACING_PACED;
		return;
	}
	if (news)
		pacing_round(&state->pacing, ack_pairs_rate(&state->pairs), settled, news == ACK_PAIRS_OVER,
			     params->min_rate_bytes_per_s);
	verdict->pacing_rate = pacing_rate(&state->pacing, params->gain_pct, ack);
	verdict->outcome = state->pacing.paced ? SPACING_PACED : SPACING_UNPACED;
	if (!state->pacing.paced || !params->exit_pct)
		return;
	if (news == ACK_PAIRS_OVER || !state->target)
		verdict->outcome = spacing_aim(state, params, ack);
	if (aim_reached(state->target, ack, verdict))
		verdict->outcome = OUTCOME_EXIT;
}

#endif
