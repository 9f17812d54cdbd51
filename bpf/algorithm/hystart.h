/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * hystart: Hybrid Start, as Linux's CUBIC has it.
 *
 * Two detectors look at each round, from a window of `low_window_segments` segments on:
 *
 *	train  ACKs less than `ack_delta_us` apart are one train. What is in flight fills the path once the train from
 *	       the round's first ACK on is longer than the minimum RTT; half of it where the sender does not pace, for
 *	       its packets have then left in half the time.
 *	delay  the smallest RTT of the round, after `min_samples` samples, exceeds the minimum RTT by a threshold.
 *
 * Either of them sets the threshold to the window. With the parameters as they are that is the ACK on which Linux's own
 * CUBIC leaves. Parameters bend the delay detector to Peters et al. 2021, which finds that on satellites it leaves
 * early and the train detector never.
 *
 * Source: Ha and Rhee, "Taming the elephants: New TCP slow start" (2011); net/ipv4/tcp_cubic.c of Linux 6.14 and later
 * (before, a round did not end while the window was below low_window_segments); Peters et al. 2021. What differs from Linux:
 *
 *  1. Every slow start is watched. Linux watches none from an exit of HyStart until a timeout, and discards samples in
 *     the first second of congestion avoidance, which may reach into a slow start after an idle period.
 *  2. Rounds begin with the first ACK of a slow start that carries an RTT sample, in Linux with the connection and with
 *     a timeout. This differs only if such an ACK acknowledges nothing cumulatively.
 *  3. The minimum RTT is that of all slow starts of the connection. Linux also counts congestion avoidance, and forgets
 *     it with a timeout.
 *  4. Time is 64 bits wide: a pause of 36 minutes does not look like none.
 *  5. Slow start is not watched while a loss is recovered from, though the window may then lie below the threshold.
 *
 * And from Peters et al. 2021:
 *
 *  6. ewma averages the minima of the rounds; Peters et al. 2021 average the minimum RTT, which says no more than the
 *     minimum itself. It does not give the weight; `average_divisor` is that of the smoothed RTT unless set.
 *  7. deviation, for which Peters et al. 2021 has the idea only: the samples of complete rounds alone count, so that a
 *     queue does not raise the threshold of the round that finds it.
 *  8. Until a round with samples is complete, both rules use the threshold of clamp.
 */
#ifndef ONRAMP_HYSTART_H
#define ONRAMP_HYSTART_H

#include "round.h"

/* Longest ACK delay granted to a train, us, and the segmentation bursts that it may be made of. */
#define HYSTART_ACK_DELAY_MAX 1000
#define HYSTART_BURSTS 4
/* Bounds of the sums behind the deviation, so that they fit 64 bits: us (16 s), and samples until old ones fade. */
#define HYSTART_RTT_MAX 0xffffffU
#define HYSTART_COUNT_MAX 32768

enum hystart_detect { HYSTART_NONE, HYSTART_TRAIN, HYSTART_DELAY, HYSTART_BOTH };
enum hystart_delay_rule { HYSTART_CLAMP, HYSTART_EWMA, HYSTART_DEVIATION };

#define HYSTART_CONTROL "onramp_hystart"
#define HYSTART_PARAMETERS(X)                                                                                          \
	X(detect, "", HYSTART_BOTH, 0, 3, "none|train|delay|both", "detectors in use")                                 \
	X(low_window_segments, "segments", 16, 0, 2147483647, "",                                                      \
	  "smaller windows are not evaluated (the source: low_window)")                                                \
	X(ack_delta_us, "us", 2000, 0, 1000000, "", "longest gap between two ACKs of a train")                         \
	X(min_samples, "samples", 8, 0, 1000, "", "RTT samples of a round before its minimum is evaluated")            \
	X(delay_rule, "", HYSTART_CLAMP, 0, 2, "clamp|ewma|deviation",                                                 \
	  "threshold of the delay: a part of the minimum RTT, of the average of the rounds' minima, or deviations")    \
	X(delay_floor_us, "us", 4000, 0, 10000000, "", "least threshold of the delay")                                 \
	X(delay_ceiling_us, "us", 16000, 0, 10000000, "", "largest threshold of the delay; clamp only")                \
	X(delay_divisor, "", 8, 1, 1000, "", "the part of the RTT that is the threshold; clamp and ewma")              \
	X(average_divisor, "", 8, 1, 1000, "", "the part by which a round moves the average; ewma")                    \
	X(deviations, "", 4, 1, 100, "", "standard deviations that are the threshold; deviation")

enum hystart_outcome { HYSTART_SMALL_WINDOW = OUTCOME_OWN };

#define HYSTART_OUTCOMES(X) X(HYSTART_SMALL_WINDOW, small_window, "the window is below low_window_segments")

struct hystart {
	u64 round_start_us;
	u64 last_ack_us; /* newest ACK of the train */
	u64 rtt_sum;	 /* of rtt_count samples since the start, older ones fading; deviation only */
	u64 rtt_squares;
	u32 rtt_count;
	u32 round_end;	  /* as in round.h */
	u32 delay_min_us; /* 0: no sample yet; kept over restarts */
	u32 round_min_us; /* 0: no sample yet */
	u32 samples;	  /* of the round */
	u32 average_us;	  /* of the rounds' minima, 0: none yet */
	u32 learned_us;	  /* threshold by the rounds before, 0: none yet */
	u32 threshold_us; /* of the newest check */
	u32 detected;	  /* enum hystart_detect, of the newest exit; kept over restarts */
	u32 rounds;	  /* since slow start began; 0: none has begun */
};

#define HYSTART_EXPORTS(X)                                                                                             \
	X(hystart, detected, "", 1, "what led to the newest exit: 1 train, 2 delay, 3 both")                           \
	X(hystart, rounds, "rounds", 1, "rounds since slow start began")                                               \
	X(hystart, delay_min_us, "us", 1, "minimum RTT in slow start")                                                 \
	X(hystart, round_min_us, "us", 1, "minimum RTT of the round")                                                  \
	X(hystart, samples, "samples", 1, "RTT samples of the round")                                                  \
	X(hystart, threshold_us, "us", 1, "threshold of the delay at the newest check")                                \
	X(hystart, average_us, "us", 1, "average of the rounds' minima")

#define HYSTART_TRACK(X)                                                                                               \
	X("minimum RTT of the round", "us", TRACK_UNLESS_0(state->round_min_us), "threshold", hystart_limit(state))
#define HYSTART_PICTURE(GAUGE, BARS, PHASE)

#define HYSTART_TRAITS 0
#define HYSTART_READS                                                                                                  \
	(ROUND_READS | READS(now_us) | READS(pacing_rate) | READS(cwnd) | READS(gso_max_size) | READS(flags))

struct hystart_params {
	HYSTART_PARAMETERS(PARAMETER_FIELD)
};

/* The RTT of a round above which the delay ends slow start, us; TRACK_NONE: nothing was checked yet. */
static __always_inline u32 hystart_limit(const struct hystart *state)
{
	u64 limit = (u64)state->delay_min_us + state->threshold_us;

	return state->delay_min_us && state->threshold_us ? (u32)min_u64(limit, TRACK_NONE - 1) : TRACK_NONE;
}

/* Slow start begins anew: rounds and what they taught are void, the minimum RTT is not. */
static __always_inline void hystart_restart(struct hystart *state)
{
	state->rounds = 0;
	state->round_min_us = 0;
	state->average_us = 0;
	state->rtt_sum = 0;
	state->rtt_squares = 0;
	state->rtt_count = 0;
}

/* The largest number whose square is not above `value`. */
static __always_inline u32 hystart_square_root(u64 value)
{
	u64 root = 0;

	for (u32 bit = 32; bit > 0; bit--) {
		u64 next = root | 1ULL << (bit - 1);

		if (next * next <= value)
			root = next;
	}
	return (u32)root;
}

/* Standard deviation of the samples so far, us, rounded down; the mean's remainder is not lost. */
static __always_inline u32 hystart_deviation(const struct hystart *state)
{
	u64 count = state->rtt_count ? state->rtt_count : 1;
	u64 mean = state->rtt_sum / count;
	u64 remainder = state->rtt_sum % count;
	u64 squared_sum = mean * (state->rtt_sum + remainder) + (remainder * remainder + count - 1) / count;

	if (state->rtt_squares <= squared_sum)
		return 0;
	return hystart_square_root((state->rtt_squares - squared_sum) / count);
}

static __always_inline void hystart_count(struct hystart *state, u32 rtt_us)
{
	u64 rtt = min_u64(rtt_us, HYSTART_RTT_MAX);

	state->rtt_sum += rtt;
	state->rtt_squares += rtt * rtt;
	if (++state->rtt_count < HYSTART_COUNT_MAX)
		return;
	state->rtt_sum /= 2;
	state->rtt_squares /= 2;
	state->rtt_count /= 2;
}

/* The threshold that the rounds so far speak for; 0: none. */
static __always_inline u32 hystart_learn(const struct hystart *state, const struct hystart_params *params)
{
	u64 divisor = max_u64(params->delay_divisor, 1);

	if (params->delay_rule == HYSTART_EWMA && state->average_us)
		return (u32)max_u64(state->average_us / divisor, 1);
	if (params->delay_rule == HYSTART_DEVIATION && state->rtt_count)
		return (u32)max_u64(params->deviations * hystart_deviation(state), 1);
	return 0;
}

static __always_inline void hystart_begin_round(struct hystart *state, const struct hystart_params *params,
						const struct ack *ack)
{
	u64 divisor = max_u64(params->average_divisor, 1);

	if (!state->average_us)
		state->average_us = state->round_min_us;
	else if (state->round_min_us)
		state->average_us = (u32)(((u64)state->average_us * (divisor - 1) + state->round_min_us) / divisor);
	state->learned_us = hystart_learn(state, params);

	state->rounds++;
	state->round_start_us = ack->now_us;
	state->last_ack_us = ack->now_us;
	state->round_end = round_end(ack);
	state->round_min_us = 0;
	state->samples = 0;
}

/* How much longer ACKs may take because both ends work in bursts, us: a few bursts at the pacing rate. */
static __always_inline u32 hystart_ack_delay(const struct ack *ack)
{
	if (!ack->pacing_rate)
		return 0;
	return (u32)min_u64((u64)ack->gso_max_size * HYSTART_BURSTS * 1000000 / ack->pacing_rate,
			    HYSTART_ACK_DELAY_MAX);
}

/* Whether the train of this round fills the path. */
static __always_inline bool hystart_train(struct hystart *state, const struct hystart_params *params,
					  const struct ack *ack)
{
	u32 halved = !(ack->flags & ACK_PACED);
	s64 train_us = (s64)(ack->now_us - state->round_start_us);

	if ((s64)(ack->now_us - state->last_ack_us) > (s64)params->ack_delta_us)
		return false;
	state->last_ack_us = ack->now_us;
	/* The delay of ACKs takes a division, which most trains are too short for. */
	if (train_us <= (s64)(state->delay_min_us >> halved))
		return false;
	return train_us > (s64)(((u64)state->delay_min_us + hystart_ack_delay(ack)) >> halved);
}

static __always_inline u32 hystart_threshold(const struct hystart *state, const struct hystart_params *params)
{
	u64 threshold = state->learned_us;
	bool learned = params->delay_rule != HYSTART_CLAMP && threshold;

	if (!learned)
		threshold = state->delay_min_us / max_u64(params->delay_divisor, 1);
	threshold = max_u64(threshold, params->delay_floor_us);
	return (u32)(learned ? threshold : min_u64(threshold, params->delay_ceiling_us));
}

/* Whether the delay of this round says that a queue has built up: OUTCOME_EXIT, or why not. */
static __always_inline u32 hystart_delay(struct hystart *state, const struct hystart_params *params, u32 rtt_us)
{
	if (!state->round_min_us || state->round_min_us > rtt_us)
		state->round_min_us = rtt_us;
	if (state->samples++ < params->min_samples)
		return OUTCOME_WARMING_UP;
	state->threshold_us = hystart_threshold(state, params);
	if (state->round_min_us > (u64)state->delay_min_us + state->threshold_us)
		return OUTCOME_EXIT;
	return OUTCOME_BELOW_THRESHOLD;
}

static __always_inline void hystart_on_ack(struct hystart *state, const struct hystart_params *params,
					   const struct ack *ack, struct verdict *verdict)
{
	u32 found = 0;
	u32 rtt_us;

	if (ack->rtt_us < 0) {
		verdict->outcome = OUTCOME_NO_RTT_SAMPLE;
		return;
	}
	rtt_us = ack->rtt_us ? (u32)ack->rtt_us : 1;
	if (!state->delay_min_us || state->delay_min_us > rtt_us)
		state->delay_min_us = rtt_us;
	if (!state->rounds || round_is_over(state->round_end, ack))
		hystart_begin_round(state, params, ack);
	if (params->delay_rule == HYSTART_DEVIATION)
		hystart_count(state, rtt_us);

	if (ack->cwnd < params->low_window_segments) {
		verdict->outcome = HYSTART_SMALL_WINDOW;
		return;
	}
	if (params->detect & HYSTART_TRAIN) {
		verdict->outcome = OUTCOME_BELOW_THRESHOLD;
		if (hystart_train(state, params, ack))
			found |= HYSTART_TRAIN;
	}
	if (params->detect & HYSTART_DELAY) {
		verdict->outcome = hystart_delay(state, params, rtt_us);
		if (verdict->outcome == OUTCOME_EXIT)
			found |= HYSTART_DELAY;
	}
	if (!found)
		return;
	state->detected = found;
	verdict->outcome = OUTCOME_EXIT;
	verdict->ssthresh = ack->cwnd;
}

LOSS_LEFT_TO_BASE(hystart)

#endif
