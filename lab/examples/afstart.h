/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * afstart: the bandwidth that is available, by the spacing of ACKs against that of the data, is threshold and window.
 *
 * Data that leave faster than the path has bandwidth available arrive further apart than they left, and so do their ACKs:
 *
 *	left     | | | | |               arrival less RTT
 *	arrived  |   |   |   |   |       wider: faster than what is available, and this is how fast that is
 *
 * Source: Zhang, Ansari, Wu, Yu: AFStart: An adaptive fast TCP slow start for wide area networks, ICC 2012, pages 1260 to 1264.
 * What its abstract says: an inline measurement of the available bandwidth in slow start sets the threshold, and the window is adjusted
 * to get there more quickly and smoothly than by doubling; tried with FAST TCP in a simulator. The measurement is that of ImTCP
 * (Man, Hasegawa, Murata: ImTCP, Computer Communications 2006), by its abstract: intervals between data as they leave against
 * intervals between ACKs as they arrive. The texts could not be had. Reconstructed:
 *
 *  1. Streams are what the window releases: groups of ACKs of at least eight segments of one round. ImTCP stores segments and sends them
 *     at intervals of its own choice, which an algorithm cannot do here.
 *  2. A group is stretched if it arrived in a tenth more time than it left in. If most groups of a round are, and at least two, the
 *     rate at which these arrived is what is available.
 *  3. The threshold is that rate by the minimum RTT. The window goes there at once, no further than the receiver's window in whole
 *     segments, paced at that rate. There is one estimate for a slow start.
 *  4. What comes after is the base's, in place of FAST.
 */
#ifndef ONRAMP_AFSTART_H
#define ONRAMP_AFSTART_H

#include "aim.h"
#include "jump.h"
#include "round.h"

#define AFSTART_ABOUT "goes to the bandwidth that the spacing of ACKs shows"
#define AFSTART_SOURCE "Zhang et al. 2012, reconstructed"
#define AFSTART_CONTROL "onramp_afstart"

#define AFSTART_PARAMETERS(X)                                                                                          \
	X(group_segments, "segments", 8, 2, 1000, "", "segments that a group acknowledges at least")                   \
	X(stretch_pct, "percent", 10, 0, 1000, "",                                                                     \
	  "by which a group arrives in more time than it left in, if stretched")

enum afstart_outcome {
	AFSTART_ESTIMATED = OUTCOME_OWN,
	AFSTART_THRESHOLD_KEPT,
};

#define AFSTART_OUTCOMES(X)                                                                                            \
	X(AFSTART_ESTIMATED, estimated, "there is an estimate, and the window goes to it")                             \
	X(AFSTART_THRESHOLD_KEPT, threshold_kept, "a lower threshold is in force that is not this algorithm's")

#define AFSTART_EXPORTS(X)                                                                                             \
	X(afstart, rate, "bytes/s", 1, "bandwidth available, 0: no estimate yet")                                      \
	X(afstart, target, "segments", 1, "window at which slow start is to be left")

#define AFSTART_TRACK(X) TRACK_WINDOW(X, "exit window", state->target)
#define AFSTART_PICTURE(GAUGE, BARS, PHASE)

#define AFSTART_TRAITS TRAIT_PACES
#define AFSTART_READS                                                                                                  \
	(ROUND_READS | AIM_READS | READS(now_us) | READS(acked) | READS(rtt_us) | READS(min_rtt_us) | READS(mss) |     \
	 READS(receive_window) | READS(flags))

struct afstart {
	u64 begin_us; /* arrival of the ACK that began the group; 0: none has */
	u64 stretched_us;
	u64 stretched_bytes; /* of the round's groups that are stretched, as are those */
	u64 rate;	     /* bytes per second; 0: no estimate yet */
	u32 begin_rtt_us;
	u32 begin_acked; /* bytes, modulo 2^32 */
	u32 round_end;	 /* as in round.h */
	u32 rounds;	 /* that have begun */
	u32 groups;	 /* of the round */
	u32 stretched;
	u32 target; /* segments; 0: no estimate yet */
	u32 unused;
};

/* Rounds whose groups take longer say nothing, and nothing overflows. */
#define AFSTART_US_MAX (1U << 30)

struct afstart_params {
	AFSTART_PARAMETERS(PARAMETER_FIELD)
};

static __always_inline void afstart_restart(struct afstart *state)
{
	*state = (struct afstart){ 0 };
}

/* A group begins with this ACK. */
static __always_inline void afstart_begin(struct afstart *state, const struct ack *ack)
{
	state->begin_us = ack->now_us;
	state->begin_rtt_us = (u32)ack->rtt_us;
	state->begin_acked = (u32)ack->bytes_acked;
}

/* What has arrived since then, if that is a group. */
static __always_inline void afstart_group(struct afstart *state, const struct afstart_params *params,
					  const struct ack *ack)
{
	u32 bytes = (u32)ack->bytes_acked - state->begin_acked;
	s64 arrived_us = (s64)(ack->now_us - state->begin_us);
	s64 left_us = arrived_us - ((s64)ack->rtt_us - (s64)state->begin_rtt_us);

	if (bytes < params->group_segments * ack_mss(ack))
		return;
	state->groups++;
	if (arrived_us > 0 && arrived_us < AFSTART_US_MAX &&
	    arrived_us * 100 > left_us * (s64)(100 + params->stretch_pct)) {
		state->stretched++;
		state->stretched_us += (u64)arrived_us;
		state->stretched_bytes += bytes;
	}
	afstart_begin(state, ack);
}

/* A round is over: whether there is an estimate. */
static __always_inline bool afstart_estimates(struct afstart *state, const struct ack *ack)
{
	u64 bytes = min_u64(state->stretched_bytes, 1ULL << 32);
	bool most = state->stretched >= 2 && state->stretched * 2 > state->groups;

	if (most && state->stretched_us)
		state->rate = bytes * 1000000 / state->stretched_us;
	state->groups = 0;
	state->stretched = 0;
	state->stretched_us = 0;
	state->stretched_bytes = 0;
	state->round_end = round_end(ack);
	return state->rate;
}

/* The window goes to the target, as far as the receiver lets it. */
static __always_inline void afstart_goes(const struct afstart *state, const struct ack *ack, struct verdict *verdict)
{
	verdict->pacing_rate = state->rate;
	verdict->outcome = AFSTART_ESTIMATED;
	jump_goes(state->target, ack, verdict);
	if (aim_reached(state->target, ack, verdict))
		verdict->outcome = OUTCOME_EXIT;
}

static __always_inline void afstart_on_ack(struct afstart *state, const struct afstart_params *params,
					   const struct ack *ack, struct verdict *verdict)
{
	u64 held;

	if (state->target) {
		afstart_goes(state, ack, verdict);
		return;
	}
	verdict->outcome = OUTCOME_NO_RTT_SAMPLE;
	if (ack->rtt_us <= 0 || !ack->min_rtt_us) {
		state->begin_us = 0;
		return;
	}
	verdict->outcome = OUTCOME_APP_LIMITED;
	if (ack->flags & ACK_APP_LIMITED && !(ack->flags & ACK_CWND_LIMITED)) {
		afstart_restart(state);
		return;
	}
	verdict->outcome = OUTCOME_WARMING_UP;
	if (!state->rounds || round_is_over(state->round_end, ack)) {
		state->rounds++;
		if (afstart_estimates(state, ack)) {
			held = min_u64(state->rate, 1ULL << 34) * min_u64(ack->min_rtt_us, 1U << 24) / 1000000;
			verdict->outcome = aim(&state->target, held / ack_mss(ack), AFSTART_ESTIMATED,
					       AFSTART_THRESHOLD_KEPT, ack);
			state->rate = state->target ? state->rate : 0;
			return;
		}
		afstart_begin(state, ack);
	} else if (!state->begin_us) {
		afstart_begin(state, ack);
	} else {
		afstart_group(state, params, ack);
	}
}

LOSS_LEFT_TO_BASE(afstart)

#endif
