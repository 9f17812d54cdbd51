/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stopeg: stops exponential growth once too much of what is in flight is on its way forward.
 *
 * Of a flow that doubles per round trip over an empty path a certain share is on its way to the receiver, and the rest has been
 * received and its ACKs are on their way back. A queue at the bottleneck holds what has not been received: the share rises.
 *
 *	   sent(t)              acknowledged(t + d)      acknowledged(t)        d: the way back
 *	     ├── on its way forward ──┼──── on its way back ────┤
 *
 * Source: Arghavani, Zhang, Eyers, Arghavani: StopEG: Detecting when to stop exponential growth in TCP slow-start, LCN 2020
 * (doi 10.1109/LCN48667.2020.9314853). What its abstract says: no more than 56.8 % of what is in flight is on its way forward
 * while the bottleneck is unsaturated, which is the threshold; changes of the window are what is looked at; BBR's startup in ns-3 is
 * what it was tried with. The text could not be had. Reconstructed:
 *
 *  1. What has reached the receiver at a time t is what has been acknowledged half a minimum RTT later: so both ways take equally
 *     long, and queues are on the way forward alone. It is known by then, from eight bins of bytes per minimum RTT.
 *  2. The share is that of a round, all of its bins together. At one moment a window that leaves as a burst is all on its way
 *     forward, or all on its way back: over a round it is half. Of a flow that is spread evenly, doubles, and meets no queue,
 *     1 / (1 + 2^-0.5) = 58.6 % are on their way forward at any moment; 56.8 % would be a growth by 1.73 per round trip.
 *  3. Slow start ends, and the window is the threshold, where BBR would leave its startup. What the application limits, or a pause of
 *     two RTTs, begins the bins anew.
 */
#ifndef ONRAMP_STOPEG_H
#define ONRAMP_STOPEG_H

#include "round.h"

#define STOPEG_ABOUT "exits when most of what is in flight is on its way forward"
#define STOPEG_SOURCE "Arghavani et al. 2020, reconstructed"
#define STOPEG_CONTROL "onramp_stopeg"

#define STOPEG_PARAMETERS(X)                                                                                           \
	X(forward_permille, "permille", 568, 1, 1000, "",                                                              \
	  "share of what is in flight on its way forward above which slow start ends")

enum stopeg_outcome { STOPEG_BIN_OPEN = OUTCOME_OWN };
#define STOPEG_OUTCOMES(X) X(STOPEG_BIN_OPEN, bin_open, "the current bin is not over")

#define STOPEG_EXPORTS(X) X(stopeg, share_permille, "permille", 1, "share on its way forward, of the newest round")
#define STOPEG_TRACK(X)                                                                                                \
	X("on its way forward", "percent", TRACK_UNLESS_0(state->share_permille / 10), "exit above",                   \
	  (u32)params->forward_permille / 10)
#define STOPEG_PICTURE(GAUGE, BARS, PHASE)

#define STOPEG_TRAITS 0
#define STOPEG_READS (ROUND_READS | READS(now_us) | READS(bytes_sent) | READS(min_rtt_us) | READS(cwnd) | READS(flags))

/* Bins of a minimum RTT, a power of two, and of the way back; those that pass without an ACK before all begins anew. */
#define STOPEG_BINS 8
#define STOPEG_BACK 4
#define STOPEG_SILENCE 16

/* Bytes are modulo 2^32. */
struct stopeg {
	u64 bin_end_us;
	u64 forward; /* bytes on their way forward, added up over the bins of a round, of flight */
	u64 flight;
	u32 bin_us; /* latched; 0: no bin has begun */
	u32 bins;   /* that are over */
	u32 begins; /* a bit for each of the newest bins: a round began in it */
	u32 round_end;
	u32 acked;  /* with the newest ACK */
	u32 rounds; /* that have been judged */
	u32 share_permille;
	u32 unused;
	u32 sent_at[STOPEG_BINS]; /* at the ends of the newest bins */
	u32 acked_at[STOPEG_BINS];
};

struct stopeg_params {
	STOPEG_PARAMETERS(PARAMETER_FIELD)
};

static __always_inline void stopeg_restart(struct stopeg *state)
{
	*state = (struct stopeg){ 0 };
}

/* The first bin begins, after nothing that says anything of it. */
static __always_inline void stopeg_begin(struct stopeg *state, const struct ack *ack)
{
	stopeg_restart(state);
	state->bin_us = (u32)max_u64(ack->min_rtt_us / STOPEG_BINS, 1);
	state->bin_end_us = ack->now_us + state->bin_us;
	state->acked = (u32)ack->bytes_acked;
	state->round_end = round_end(ack);
}

/* A bin is over. Nothing was acknowledged in it since the ACK before this one. Whether a round is over with what is known now. */
static __always_inline bool stopeg_close(struct stopeg *state, const struct ack *ack)
{
	u32 at = state->bins % STOPEG_BINS, before = (state->bins - STOPEG_BACK) % STOPEG_BINS;
	u32 sent = state->sent_at[before];
	bool over = state->begins >> STOPEG_BACK & 1;

	if (over) {
		state->share_permille = state->flight ? (u32)(state->forward * 1000 / state->flight) : 0;
		state->forward = state->flight = 0;
		state->rounds++;
	}
	if (state->bins >= STOPEG_BACK) {
		state->forward += (s32)(sent - state->acked) > 0 ? sent - state->acked : 0;
		state->flight += sent - state->acked_at[before];
	}
	state->sent_at[at] = (u32)ack->bytes_sent;
	state->acked_at[at] = state->acked;
	state->begins <<= 1;
	state->bins++;
	return over;
}

static __always_inline void stopeg_on_ack(struct stopeg *state, const struct stopeg_params *params,
					  const struct ack *ack, struct verdict *verdict)
{
	bool judged = false;
	u64 over;

	verdict->outcome = OUTCOME_APP_LIMITED;
	if (ack->flags & ACK_APP_LIMITED && !(ack->flags & ACK_CWND_LIMITED)) {
		stopeg_restart(state);
		return;
	}
	verdict->outcome = OUTCOME_NO_RTT_SAMPLE;
	if (!ack->min_rtt_us)
		return;
	verdict->outcome = STOPEG_BIN_OPEN;
	if (!state->bin_us || ack->now_us >= state->bin_end_us) {
		over = state->bin_us ? (ack->now_us - state->bin_end_us) / state->bin_us + 1 : 0;
		if (!over || over > STOPEG_SILENCE)
			stopeg_begin(state, ack);
		else
			state->bin_end_us += over * state->bin_us;
		KEEP_LOOP
		for (u32 bin = 0; bin < STOPEG_SILENCE && bin < over && over <= STOPEG_SILENCE; bin++)
			judged |= stopeg_close(state, ack);
	}
	if (round_is_over(state->round_end, ack)) {
		state->begins |= 1;
		state->round_end = round_end(ack);
	}
	state->acked = (u32)ack->bytes_acked;
	/* Of the first round, the begin is not known. */
	if (!judged || state->rounds < 2)
		return;
	verdict->outcome = OUTCOME_BELOW_THRESHOLD;
	if (state->share_permille <= params->forward_permille)
		return;
	verdict->outcome = OUTCOME_EXIT;
	verdict->ssthresh = ack->cwnd;
}

LOSS_LEFT_TO_BASE(stopeg)

#endif
