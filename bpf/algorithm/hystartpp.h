/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * hystartpp: HyStart++, RFC 9406.
 *
 * The RTT of a round that is an eighth (4 to 16 ms) above that of the round before is taken for a queue, but only half
 * believed: growth slows to a quarter (Conservative Slow Start, CSS). If the RTT comes down again it was jitter and
 * slow start goes on; if it has not after five rounds, slow start is over.
 *
 *	             round's RTT >= last round's + threshold
 *	slow start ──────────────────────────────────────────► CSS ──── css_rounds ended ────► ssthresh = window
 *	     ▲                                                  │
 *	     └──────────── round's RTT < baseline ◄─────────────┘      baseline: the round's RTT when CSS was entered
 *
 * Source: RFC 9406, section 4.2 with the constants of 4.3. What it leaves open, and what differs:
 *
 *  1. windowEnd is acknowledged when the byte with that number is, so a round begins with the first ACK of data that
 *     was sent in it. The ACK that begins a round counts in it.
 *  2. An ACK grows the window by the rule of the phase that it finds, as the RFC's order of steps has it: the ACK that
 *     enters CSS grows as slow start does.
 *  3. The round in which CSS is entered counts as its first, wherever in it that happens. At the end of the last one
 *     the window is the threshold, before the ACK that ends it has grown it.
 *  4. Growth is counted in segments, by those acknowledged; what a division in CSS leaves over is kept for the
 *     next ACK.
 *  5. L limits growth per ACK in segments, in both phases, unless the sender paces. An ACK of 20 segments, as GRO, LRO
 *     and ACK thinning make them, then grows the window by 8, or by 2 in CSS, as the RFC says.
 *  6. Only slow starts without a threshold are watched (section 4.3: "the initial slow start"). Others are as the base
 *     does them.
 *  7. An ACK without an RTT sample (of retransmitted data) grows the window and ends rounds, but is no sample. The RFC
 *     does not speak of it.
 *  8. After loss or a mark the threshold is the base's. The RFC's "ssthresh to the current cwnd" is read as the window
 *     after the reduction that RFC 5681 and RFC 9438 demand.
 */
#ifndef ONRAMP_HYSTARTPP_H
#define ONRAMP_HYSTARTPP_H

#include "round.h"

#define HYSTARTPP_CONTROL "onramp_hystpp"
#define HYSTARTPP_PARAMETERS(X)                                                                                        \
	X(min_rtt_thresh_us, "us", 4000, 0, 10000000, "", "least rise of the RTT that enters CSS")                     \
	X(max_rtt_thresh_us, "us", 16000, 0, 10000000, "", "rise of the RTT that always enters CSS")                   \
	X(min_rtt_divisor, "", 8, 1, 1000, "", "between the two, the part of the last round's RTT that enters CSS")    \
	X(rtt_samples, "samples", 8, 1, 1000, "",                                                                      \
	  "RTT samples of a round before its minimum is evaluated (the source: n_rtt_sample)")                         \
	X(css_growth_divisor, "", 4, 1, 1000, "", "segments acknowledged for each that CSS grows by")                  \
	X(css_rounds, "rounds", 5, 1, 1000, "", "rounds of CSS after which slow start is exited")                      \
	X(ack_limit_segments, "segments", 8, 1, 1000000, "",                                                           \
	  "L: segments of one ACK that count towards growth; unlimited where the sender paces")

enum hystartpp_outcome {
	HYSTARTPP_CSS_ENTERED = OUTCOME_OWN,
	HYSTARTPP_CSS,
	HYSTARTPP_CSS_LEFT,
	HYSTARTPP_THRESHOLD_KNOWN,
};

#define HYSTARTPP_OUTCOMES(X)                                                                                          \
	X(HYSTARTPP_CSS_ENTERED, css_entered, "the RTT has risen: growth slows down")                                  \
	X(HYSTARTPP_CSS, css, "conservative slow start goes on")                                                       \
	X(HYSTARTPP_CSS_LEFT, css_left, "the RTT has come down again: back to slow start")                             \
	X(HYSTARTPP_THRESHOLD_KNOWN, threshold_known, "not the initial slow start: left to the base")

enum hystartpp_phase { HYSTARTPP_SLOW_START, HYSTARTPP_CONSERVATIVE };

struct hystartpp {
	u32 window_end; /* as in round.h */
	u32 in_round;
	u32 phase;
	u32 last_round_min_us; /* 0: infinity */
	u32 round_min_us;      /* 0: infinity */
	u32 samples;	       /* of the round */
	u32 baseline_us;       /* of CSS */
	u32 css_round;	       /* rounds ended since CSS was entered */
	u32 css_remainder;     /* segments acknowledged towards the next that CSS grows by */
	u32 css_entries;       /* kept over restarts, as is the next */
	u32 css_rounds;
	u32 unused;
};

#define HYSTARTPP_EXPORTS(X)                                                                                           \
	X(hystartpp, phase, "", 1, "0 slow start, 1 conservative slow start")                                          \
	X(hystartpp, css_entries, "", 1, "times conservative slow start was entered")                                  \
	X(hystartpp, css_rounds, "rounds", 1, "rounds that ended in conservative slow start, all entries together")    \
	X(hystartpp, last_round_min_us, "us", 1, "minimum RTT of the round before; 0: none")                           \
	X(hystartpp, round_min_us, "us", 1, "minimum RTT of the round; 0: none yet")                                   \
	X(hystartpp, samples, "samples", 1, "RTT samples of the round")                                                \
	X(hystartpp, baseline_us, "us", 1, "RTT below which conservative slow start ends again")

#define HYSTARTPP_TRACK(X)                                                                                             \
	X("minimum RTT of the round", "us", TRACK_UNLESS_0(state->round_min_us), "minimum RTT of the previous round",  \
	  TRACK_UNLESS_0(state->last_round_min_us))
#define HYSTARTPP_PICTURE(GAUGE, BARS, PHASE) PHASE("phase", "slow start|conservative slow start", state->phase)

#define HYSTARTPP_TRAITS TRAIT_LIMITS_GROWTH
#define HYSTARTPP_READS (ROUND_READS | READS(cwnd) | READS(ssthresh) | READS(flags))

struct hystartpp_params {
	HYSTARTPP_PARAMETERS(PARAMETER_FIELD)
};

static __always_inline void hystartpp_restart(struct hystartpp *state)
{
	state->in_round = 0;
	state->phase = HYSTARTPP_SLOW_START;
	state->round_min_us = 0;
	state->baseline_us = 0;
}

static __always_inline void hystartpp_begin_round(struct hystartpp *state, const struct ack *ack)
{
	state->in_round = 1;
	state->window_end = round_end(ack);
	state->last_round_min_us = state->round_min_us;
	state->round_min_us = 0;
	state->samples = 0;
}

/* How this ACK grows the window. */
static __always_inline void hystartpp_grow(struct hystartpp *state, const struct hystartpp_params *params,
					   const struct ack *ack, struct verdict *verdict)
{
	bool paced = ack->flags & ACK_PACED;
	u64 counted = paced ? ack->acked : min_u64(ack->acked, params->ack_limit_segments);

	if (state->phase == HYSTARTPP_CONSERVATIVE) {
		grow_slower(verdict, &state->css_remainder, counted, params->css_growth_divisor);
	} else if (!paced) {
		verdict->growth = GROWTH_LIMITED;
		verdict->growth_limit = (u32)params->ack_limit_segments;
	}
}

/* What the round's RTT says (RFC 9406 section 4.2): the outcome. */
static __always_inline u32 hystartpp_evaluate(struct hystartpp *state, const struct hystartpp_params *params)
{
	bool enough = state->samples >= params->rtt_samples;
	u64 threshold;

	if (state->phase == HYSTARTPP_CONSERVATIVE) {
		if (!enough || state->round_min_us >= state->baseline_us)
			return HYSTARTPP_CSS;
		state->phase = HYSTARTPP_SLOW_START;
		state->baseline_us = 0;
		return HYSTARTPP_CSS_LEFT;
	}
	if (!enough || !state->last_round_min_us)
		return OUTCOME_WARMING_UP;
	threshold = state->last_round_min_us / max_u64(params->min_rtt_divisor, 1);
	threshold = max_u64(params->min_rtt_thresh_us, min_u64(threshold, params->max_rtt_thresh_us));
	if (state->round_min_us < state->last_round_min_us + threshold)
		return OUTCOME_BELOW_THRESHOLD;
	state->phase = HYSTARTPP_CONSERVATIVE;
	state->baseline_us = state->round_min_us;
	state->css_round = 0;
	state->css_remainder = 0;
	state->css_entries++;
	return HYSTARTPP_CSS_ENTERED;
}

static __always_inline void hystartpp_on_ack(struct hystartpp *state, const struct hystartpp_params *params,
					     const struct ack *ack, struct verdict *verdict)
{
	u32 rtt_us;

	if (ack->ssthresh < NO_THRESHOLD) {
		verdict->outcome = HYSTARTPP_THRESHOLD_KNOWN;
		return;
	}
	if (!state->in_round) {
		hystartpp_begin_round(state, ack);
	} else if (round_is_over(state->window_end, ack)) {
		if (state->phase == HYSTARTPP_CONSERVATIVE) {
			state->css_rounds++;
			if (++state->css_round >= params->css_rounds) {
				state->phase = HYSTARTPP_SLOW_START;
				verdict->outcome = OUTCOME_EXIT;
				verdict->ssthresh = ack->cwnd;
				return;
			}
		}
		hystartpp_begin_round(state, ack);
	}
	hystartpp_grow(state, params, ack, verdict);
	if (ack->rtt_us < 0) {
		verdict->outcome = OUTCOME_NO_RTT_SAMPLE;
		return;
	}
	rtt_us = ack->rtt_us ? (u32)ack->rtt_us : 1;
	if (!state->round_min_us || state->round_min_us > rtt_us)
		state->round_min_us = rtt_us;
	state->samples++;
	verdict->outcome = hystartpp_evaluate(state, params);
}

LOSS_LEFT_TO_BASE(hystartpp)

#endif
