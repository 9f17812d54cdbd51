/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * inflight: the window never exceeds what the path holds by a running estimate of its bandwidth.
 *
 *	bound = bandwidth x minimum RTT + headroom_segments,  at least floor_bytes
 *
 * Bandwidth is what ACKs acknowledge over at least sample_min_us, smoothed with 15/16 of its past. In slow start and in
 * congestion avoidance growth ends at the bound, and a window above it is cut to it. Growth is the base's.
 *
 * How the window can double at all: an average over a round trip is window / RTT, whose product with the RTT is the
 * window itself, and the bound lets it grow by the headroom only. But slow start sends each round as a train, and within
 * a train ACKs come at the rate of the bottleneck. Samples are much shorter than a round trip and each counts the same,
 * so they show the bottleneck's rate, and the headroom is only what the window grows by once the path is full.
 *
 * Source: Gotta et al. 2006, which describes the bandwidth-delay limiter of FreeBSD 5.4 by its effect (no loss, very
 * regular packets, slightly less than the channel gives); smoothing, headroom and floor are that system's. What differs
 * from it:
 *
 *  1. Time is measured in microseconds and a sample lasts sample_min_us at least, where the ticks of that system set
 *     its length.
 *  2. A pause in which nothing was acknowledged for more than an eighth of the minimum RTT is no part of a sample:
 *     between two trains there is nothing to measure. The same holds while the application limits the sender.
 *  3. The RTT is the minimum, so that the bound does not grow with a queue. FreeBSD took the mean of the smoothed and
 *     the best RTT (rtt_source=mean): on a link whose capacity is allocated on demand, waiting for it is part of the
 *     path, and a bound by the minimum never asks for more.
 *  4. There is one window: where that system keeps bound and congestion window apart and sends by the smaller, here the
 *     window is cut. What the bound rises by later has to be grown again.
 *  5. There is no bound before the first sample, and the first sixteen are averaged evenly: a past of 0 would count as
 *     a very slow path.
 *  6. The bound alone does not keep a queue of less than half the path from overflowing: slow start sends each train at
 *     twice the bottleneck's rate, and the last one before the bound builds a queue of half the bound. With pacing=on
 *     trains leave at the estimate by the policy of pacing.h. That is not of the source; off unless set.
 */
#ifndef ONRAMP_INFLIGHT_H
#define ONRAMP_INFLIGHT_H

#include "pacing.h"
#include "round.h"

enum inflight_rtt_source { INFLIGHT_MINIMUM, INFLIGHT_MEAN };

#define INFLIGHT_CONTROL "onramp_inflight"
#define INFLIGHT_PARAMETERS(X)                                                                                         \
	X(sample_min_us, "us", 1000, 100, 1000000, "", "shortest time over which bandwidth is measured")               \
	X(headroom_segments, "segments", 2, 0, 1000, "", "window beyond bandwidth x minimum RTT (the source: stab)")   \
	X(floor_bytes, "bytes", 6144, 0, 1000000000, "", "window that the bound never falls below")                    \
	X(pacing, "", 0, 0, 1, "off|on", "pace slow start at the estimate")                                            \
	X(rtt_source, "", INFLIGHT_MINIMUM, 0, 1, "min|mean",                                                          \
	  "RTT that bandwidth is multiplied by: the minimum, or the mean of it and the smoothed one")

enum inflight_outcome {
	INFLIGHT_BELOW_BOUND = OUTCOME_OWN,
	INFLIGHT_HELD,
	INFLIGHT_CUT,
};

#define INFLIGHT_OUTCOMES(X)                                                                                           \
	X(INFLIGHT_BELOW_BOUND, below_bound, "the window may grow up to the bound")                                    \
	X(INFLIGHT_HELD, held, "the window is at the bound")                                                           \
	X(INFLIGHT_CUT, cut, "the window was above the bound")

struct inflight {
	u64 bandwidth; /* smoothed, bytes per second; 0: no sample yet */
	u64 begin_us;  /* of the current sample */
	u64 begin_acked;
	u64 last_us;   /* ACK before */
	u32 measuring; /* whether there is an open sample */
	u32 samples;   /* taken; stops counting at 2^32 - 1 */
	u32 bound;     /* segments; 0: none */
	u32 estimate;  /* bandwidth in kB/s */
	u32 round_end; /* as in round.h */
	u32 in_round;
	struct pacing pacing;
};

#define INFLIGHT_EXPORTS(X)                                                                                            \
	X(inflight, estimate, "kB/s", 1, "smoothed bandwidth")                                                         \
	X(inflight, bound, "segments", 1, "largest window")                                                            \
	X(inflight, samples, "samples", 1, "samples of the bandwidth")

#define INFLIGHT_TRACK(X) TRACK_WINDOW(X, "bound", state->bound)
#define INFLIGHT_PICTURE(GAUGE, BARS, PHASE)

#define INFLIGHT_TRAITS (TRAIT_ALWAYS | TRAIT_LIMITS_GROWTH | TRAIT_PACES)
#define INFLIGHT_READS (ROUND_READS | PACING_READS | READS(now_us) | READS(smoothed_rtt_us) | READS(ssthresh))

struct inflight_params {
	INFLIGHT_PARAMETERS(PARAMETER_FIELD)
};

/* Samples from which on the bandwidth, then averaged over as many, is an estimate to space by. */
#define INFLIGHT_SETTLED 16
/* Part of the minimum RTT without an ACK that ends a train. */
#define INFLIGHT_PAUSE_PART 8
/* Keeps products within 64 bits: more than a connection can have in flight, than any link's rate, than any RTT. */
#define INFLIGHT_BYTES_MAX (1ULL << 40)
#define INFLIGHT_RATE_MAX (1ULL << 34)
#define INFLIGHT_RTT_MAX_US (1U << 29)

/* What was measured of the path stays, what was in progress does not. */
static __always_inline void inflight_restart(struct inflight *state)
{
	state->measuring = 0;
	state->in_round = 0;
	pacing_restart(&state->pacing);
}

static __always_inline u32 inflight_on_loss(struct inflight *state, const struct inflight_params *params,
					    const struct ack *ack, u32 base_ssthresh)
{
	(void)params;
	(void)ack;
	state->measuring = 0;
	return base_ssthresh;
}

/* Takes a sample if there is one to take. */
static __always_inline void inflight_measure(struct inflight *state, const struct inflight_params *params,
					     const struct ack *ack)
{
	u64 us = ack->now_us - state->begin_us;
	u64 pause_us = max_u64(ack->min_rtt_us / INFLIGHT_PAUSE_PART, params->sample_min_us);
	u64 bytes = ack->bytes_acked - state->begin_acked;
	u64 weight;
	bool train = state->measuring && !(ack->flags & ACK_APP_LIMITED) && ack->now_us - state->last_us <= pause_us;

	state->last_us = ack->now_us;
	if (train && us < max_u64(params->sample_min_us, 1))
		return;
	if (train) {
		bytes = min_u64(bytes, INFLIGHT_BYTES_MAX) * 1000000 / (us ? us : 1);
		state->samples += state->samples != 0xffffffffU;
		weight = min_u64(state->samples, 16);
		state->bandwidth = (state->bandwidth * (weight - 1) + min_u64(bytes, INFLIGHT_RATE_MAX)) / weight;
	}
	state->measuring = 1;
	state->begin_us = ack->now_us;
	state->begin_acked = ack->bytes_acked;
}

/* Whether the first of what was not yet sent when the round began is acknowledged; the next round begins with it. */
static __always_inline bool inflight_round_over(struct inflight *state, const struct ack *ack)
{
	bool began = state->in_round;

	if (began && !round_is_over(state->round_end, ack))
		return false;
	state->in_round = 1;
	state->round_end = round_end(ack);
	return began;
}

static __always_inline u32 inflight_bound(const struct inflight *state, const struct inflight_params *params,
					  const struct ack *ack)
{
	u64 rtt_us = params->rtt_source == INFLIGHT_MEAN ? ((u64)ack->min_rtt_us + ack->smoothed_rtt_us) / 2
							 : ack->min_rtt_us;
	u64 bytes = state->bandwidth * min_u64(rtt_us, INFLIGHT_RTT_MAX_US) / 1000000;
	u32 mss = ack_mss(ack);
	u64 segments = max_u64(bytes / mss + params->headroom_segments, params->floor_bytes / mss);

	return (u32)min_u64(max_u64(segments, MIN_WINDOW), NO_THRESHOLD);
}

static __always_inline void inflight_on_ack(struct inflight *state, const struct inflight_params *params,
					    const struct ack *ack, struct verdict *verdict)
{
	inflight_measure(state, params, ack);
	if (inflight_round_over(state, ack))
		pacing_round(&state->pacing, state->bandwidth, state->samples >= INFLIGHT_SETTLED, true, 0);
	state->estimate = (u32)(state->bandwidth / 1000);
	if (params->pacing && ack->cwnd < ack->ssthresh)
		verdict->pacing_rate = pacing_rate(&state->pacing, 100, ack);
	if (!state->samples || !ack->min_rtt_us) {
		verdict->outcome = OUTCOME_WARMING_UP;
		return;
	}
	state->bound = inflight_bound(state, params, ack);
	verdict->growth = GROWTH_LIMITED;
	if (ack->cwnd > state->bound) {
		verdict->cwnd = state->bound;
		verdict->outcome = INFLIGHT_CUT;
		return;
	}
	verdict->growth_limit = state->bound - ack->cwnd;
	verdict->outcome = verdict->growth_limit ? INFLIGHT_BELOW_BOUND : INFLIGHT_HELD;
}

#endif
