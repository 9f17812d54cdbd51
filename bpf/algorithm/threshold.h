/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * threshold: a lower slow start threshold after loss, for paths whose buffer is small against their bandwidth-delay
 * product. There slow start, which sends at twice the rate of the bottleneck, overflows the buffer at a window WB that
 * is less than half of the window Wmax that the path holds in congestion avoidance; a threshold of Wmax/2 then makes
 * every slow start end in loss. With a threshold of gamma x Wmax, gamma at most gmax, the next one ends before.
 *
 *	Wmax = (B/mu + tau)(mu - lambda) + 1 (1)      WB = B (2 mu - lambda)/mu (2)      gmax = WB/Wmax (4)
 *
 *	mu, lambda: rates of the bottleneck and of others' traffic through it, B: its buffer, tau: RTT without queue
 *
 * What of this the sender can see: mu - lambda is the rate that a round of ACK pairs shows (ack_pairs.h); while the
 * buffer is full the RTT is its largest, tau + B/mu, so B/mu = maxRTT - minRTT, the largest of this round and the one
 * before. With rho = lambda/mu:
 *
 *	Wmax = maxRTT (mu - lambda) + 1      WB = (maxRTT - minRTT)(mu - lambda)(2 - rho)/(1 - rho)
 *
 * gamma is used if 1/4 < gmax <= 1/2: above, the standard threshold is no problem; below, the cure is worse than the
 * disease (Barakat et al. 1999, figure 7). Else, and where nothing is known, the base decides.
 *
 * Source: Barakat et al. 1999, first proposition. What differs from it:
 *
 *  1. Only the threshold after a loss in slow start is set. After one in congestion avoidance the base's stays, which
 *     CUBIC makes 0.7 of the window.
 *  2. gamma=fixed multiplies the window at which the loss is noticed. In slow start that is up to 2 WB, not Wmax.
 *  3. gamma=auto multiplies the Wmax of (1), and sets at most half of the window at which the loss is noticed: above
 *     that gamma would exceed 1/2 of it.
 *  4. rho cannot be derived from ACK pairs: it is a parameter, 0 unless set, which makes gmax smaller than it is.
 *  5. gamma is margin_pct below gmax (Barakat et al. 1999 take 0.34 of 0.38), but not below 1/4.
 *  6. gmax is computed in thousandths, rounded down.
 */
#ifndef ONRAMP_THRESHOLD_H
#define ONRAMP_THRESHOLD_H

#include "ack_pairs.h"
#include "algorithm.h"

enum threshold_gamma { THRESHOLD_FIXED, THRESHOLD_AUTO };

/* How the last threshold after a loss came about. */
enum threshold_reaction {
	THRESHOLD_NO_LOSS,
	THRESHOLD_BY_FIXED,
	THRESHOLD_BY_AUTO,
	THRESHOLD_NO_ESTIMATE,
	THRESHOLD_TOO_SMALL,
	THRESHOLD_NO_PROBLEM,
};

/* The range of gmax that is of use, thousandths: above the first, up to the second. */
#define THRESHOLD_USEFUL 250
#define THRESHOLD_NEEDED 500
/* Keeps rate times RTT within 64 bits; 9 minutes. */
#define THRESHOLD_RTT_MAX_US (1U << 29)

#define THRESHOLD_CONTROL "onramp_thresh"
#define THRESHOLD_PARAMETERS(X)                                                                                        \
	X(gamma, "", THRESHOLD_AUTO, 0, 1, "fixed|auto",                                                               \
	  "threshold after a loss: gamma_pct of the window, or below what the path's estimated buffer bears")          \
	X(gamma_pct, "percent", 34, 1, 50, "", "of the window at loss, with gamma=fixed")                              \
	X(margin_pct, "percent", 10, 0, 50, "", "below the largest gamma without loss, with gamma=auto")               \
	X(cross_pct, "percent", 0, 0, 95, "", "of the bottleneck that others' traffic takes, with gamma=auto")

enum threshold_outcome { THRESHOLD_ROUND_OPEN = OUTCOME_OWN, THRESHOLD_DROPPED, THRESHOLD_ESTIMATED };

#define THRESHOLD_OUTCOMES(X)                                                                                          \
	X(THRESHOLD_ROUND_OPEN, round_open, "the round is not over")                                                   \
	X(THRESHOLD_DROPPED, dropped, "the round's ACK pairs show nothing of the bottleneck: the last estimate stays") \
	X(THRESHOLD_ESTIMATED, estimated, "the round's ACK pairs gave an estimate")

struct threshold {
	struct ack_pairs pairs;
	u64 rate;	 /* mu - lambda, bytes per second; 0: none */
	u32 max_rtt_us;	 /* of the current round; 0: no sample */
	u32 last_max_us; /* of the round before; 0: no sample */
	u32 estimate;	 /* rate in kB/s, to be shown */
	u32 buffer;	 /* B, segments, at the last loss */
	u32 path;	 /* Wmax, segments, at the last loss */
	u32 gamma_max;	 /* gmax, thousandths, at the last loss */
	u32 reaction;	 /* enum threshold_reaction */
	u32 unused;
};

#define THRESHOLD_EXPORTS(X)                                                                                           \
	X(threshold, reaction, "", 1,                                                                                  \
	  "last threshold after loss: 0 none, 1 fixed, 2 auto; the base's: 3 no estimate, 4 gmax <= 1/4, 5 > 1/2")     \
	X(threshold, gamma_max, "1/1000", 1, "gmax at that loss; 0: no estimate")                                      \
	X(threshold, buffer, "segments", 1, "the bottleneck's buffer as estimated at that loss")                       \
	X(threshold, path, "segments", 1, "Wmax as estimated at that loss")                                            \
	X(threshold, estimate, "kB/s", 1, "rate of the bottleneck that is left to this flow, by the newest estimate")  \
	X(threshold, max_rtt_us, "us", 1, "largest RTT of the current round")                                          \
	X(threshold, pairs.rounds, "rounds", 1, "rounds that have ended since slow start began")

#define THRESHOLD_TRACK(X)
#define THRESHOLD_PICTURE(GAUGE, BARS, PHASE)

#define THRESHOLD_TRAITS 0
#define THRESHOLD_READS (ACK_PAIRS_READS | READS(min_rtt_us) | READS(cwnd))

struct threshold_params {
	THRESHOLD_PARAMETERS(PARAMETER_FIELD)
};

static __always_inline void threshold_restart(struct threshold *state)
{
	ack_pairs_restart(&state->pairs);
	state->rate = 0;
	state->estimate = 0;
	state->max_rtt_us = 0;
	state->last_max_us = 0;
}

/* Measures, also with gamma=fixed, so that there is an estimate if that is changed later. */
static __always_inline void threshold_on_ack(struct threshold *state, const struct threshold_params *params,
					     const struct ack *ack, struct verdict *verdict)
{
	bool first = !state->pairs.begun;
	u32 news = ack_pairs_on_ack(&state->pairs, ack);

	(void)params;
	if (news == ACK_PAIRS_OVER) {
		state->last_max_us = state->max_rtt_us;
		state->max_rtt_us = 0;
	}
	if (ack->rtt_us > 0)
		state->max_rtt_us = (u32)max_u64(state->max_rtt_us, (u32)ack->rtt_us);
	if (!news) {
		if (first)
			verdict->outcome = OUTCOME_WARMING_UP;
		else if (ack->flags & ACK_APP_LIMITED)
			verdict->outcome = OUTCOME_APP_LIMITED;
		else
			verdict->outcome = THRESHOLD_ROUND_OPEN;
		return;
	}
	if (state->pairs.result != ACK_PAIRS_SETTLED) {
		verdict->outcome = THRESHOLD_DROPPED;
		return;
	}
	state->rate = ack_pairs_rate(&state->pairs);
	state->estimate = (u32)(state->rate / 1000);
	verdict->outcome = THRESHOLD_ESTIMATED;
}

/* Estimates Wmax, B and gmax at a loss (Barakat et al. 1999: equations 1 and 4). False: nothing to estimate from. */
static __always_inline bool threshold_estimate(struct threshold *state, const struct threshold_params *params,
					       const struct ack *ack)
{
	u64 max_rtt_us = min_u64(max_u64(state->max_rtt_us, state->last_max_us), THRESHOLD_RTT_MAX_US);
	u64 others = min_u64(params->cross_pct, 99);
	u64 mss = ack_mss(ack);
	u64 queue_us, bytes, segment_us;

	state->gamma_max = 0;
	state->buffer = 0;
	state->path = 0;
	if (!state->rate || !ack->min_rtt_us || max_rtt_us <= ack->min_rtt_us)
		return false;
	queue_us = max_rtt_us - ack->min_rtt_us;
	/* B = queue x mu, and mu = rate / (1 - rho). */
	bytes = state->rate * queue_us / 1000000;
	state->buffer = (u32)min_u64(bytes / (100 - others) * 100 / mss, ~0U);
	state->path = (u32)min_u64(state->rate * max_rtt_us / 1000000 / mss + 1, ~0U);
	/* (4) with both windows divided by the rate: times. */
	segment_us = mss * 1000000 / state->rate;
	state->gamma_max = (u32)(queue_us * (200 - others) * 1000 / ((100 - others) * (max_rtt_us + segment_us)));
	return true;
}

/* The threshold after a loss, ECN or timeout in slow start. */
static __always_inline u32 threshold_on_loss(struct threshold *state, const struct threshold_params *params,
					     const struct ack *ack, u32 base_ssthresh)
{
	u64 target, gamma;
	bool estimated = threshold_estimate(state, params, ack);

	if (params->gamma == THRESHOLD_FIXED) {
		state->reaction = THRESHOLD_BY_FIXED;
		return (u32)max_u64((u64)ack->cwnd * params->gamma_pct / 100, MIN_WINDOW);
	}
	if (!estimated) {
		state->reaction = THRESHOLD_NO_ESTIMATE;
		return base_ssthresh;
	}
	if (state->gamma_max <= THRESHOLD_USEFUL) {
		state->reaction = THRESHOLD_TOO_SMALL;
		return base_ssthresh;
	}
	if (state->gamma_max > THRESHOLD_NEEDED) {
		state->reaction = THRESHOLD_NO_PROBLEM;
		return base_ssthresh;
	}
	state->reaction = THRESHOLD_BY_AUTO;
	gamma = max_u64((u64)state->gamma_max * (100 - min_u64(params->margin_pct, 100)) / 100, THRESHOLD_USEFUL);
	target = min_u64(state->path * gamma / 1000, ack->cwnd / 2);
	return (u32)max_u64(target, MIN_WINDOW);
}

#endif
