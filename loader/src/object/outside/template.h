/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * newname: the idea in plain words, the signal that it uses, and when it exits.
 *
 * This one exits once the smallest RTT of a round is a given share above the smallest of the connection.
 */
#ifndef ONRAMP_NEWNAME_H
#define ONRAMP_NEWNAME_H

#include "algorithm.h"

/* What the lists say of it. */
#define NEWNAME_ABOUT "exits when a round's RTT has risen"
#define NEWNAME_SOURCE "here"

/* The congestion control's name: at most 15 bytes. */
#define NEWNAME_CONTROL "onramp_newname"

/* A row per parameter: X(name with its unit, unit, default, minimum, maximum, choices, help). */
#define NEWNAME_PARAMETERS(X)                                                                                             \
	X(rise_pct, "percent", 25, 1, 1000, "", "rise of a round's smallest RTT above the connection's that ends slow start")

/* What a verdict of its own can be called: X(NEWNAME_OUTCOME_..., name, help), from OUTCOME_OWN on. */
#define NEWNAME_OUTCOMES(X)

/* What of the state is shown: X(algorithm, field, unit, elements, help). */
#define NEWNAME_EXPORTS(X) X(newname, round_rtt_us, "us", 1, "smallest RTT of the current round")

/* The value that is drawn over time, with the limit at which slow start ends; TRACK_NONE where there is none. */
#define NEWNAME_TRACK(X)                                                                                                  \
	X("round's smallest RTT", "us", TRACK_UNLESS_0(state->round_rtt_us), "exit above",                             \
	  TRACK_UNLESS_0(newname_limit_us(params, ack)))
#define NEWNAME_PICTURE(GAUGE, BARS, PHASE)

/* TRAIT_LIMITS_GROWTH, TRAIT_PACES, TRAIT_ALWAYS, TRAIT_BASELINE, TRAIT_SLEEPS, TRAIT_DOZES (algorithm.h), and the fields of an ACK that are read. */
#define NEWNAME_TRAITS 0
#define NEWNAME_READS (READS(bytes_acked) | READS(bytes_sent) | READS(rtt_us) | READS(min_rtt_us) | READS(cwnd))

/* Of one flow, zeroed when it starts; a multiple of 8 bytes. */
struct newname {
	u64 round_end; /* acknowledged then */
	u32 round_rtt_us; /* 0: no sample yet */
	u32 unused;
};

struct newname_params {
	NEWNAME_PARAMETERS(PARAMETER_FIELD)
};

static __always_inline u32 newname_limit_us(const struct newname_params *params, const struct ack *ack)
{
	return ack->min_rtt_us + (u32)(ack->min_rtt_us * params->rise_pct / 100);
}

/* Slow start begins, or begins anew. */
static __always_inline void newname_restart(struct newname *state)
{
	*state = (struct newname){ 0 };
}

/* One ACK in slow start. A verdict of zeros goes on doubling. */
static __always_inline void newname_on_ack(struct newname *state, const struct newname_params *params, const struct ack *ack,
					struct verdict *verdict)
{
	verdict->outcome = OUTCOME_NO_RTT_SAMPLE;
	if (ack->rtt_us <= 0)
		return;
	if (ack->bytes_acked >= state->round_end) {
		state->round_end = ack->bytes_sent;
		state->round_rtt_us = 0;
	}
	if (!state->round_rtt_us || (u32)ack->rtt_us < state->round_rtt_us)
		state->round_rtt_us = (u32)ack->rtt_us;
	verdict->outcome = OUTCOME_BELOW_THRESHOLD;
	if (state->round_rtt_us <= newname_limit_us(params, ack))
		return;
	verdict->outcome = OUTCOME_EXIT;
	verdict->ssthresh = ack->cwnd;
}

/* What a loss does is the base's affair. */
LOSS_LEFT_TO_BASE(newname)

#endif
