/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * SUSS (Arghavani, Zhang, Eyers, Arghavani: SUSS: Improving TCP Performance by Speeding Up Slow-Start, SIGCOMM 2024): rounds of the
 * first slow start quadruple the window in place of doubling it, for as long as the next round is predicted to double too. Here
 * to compare with `fast`.
 *
 * Of the paper, by its sections "Theory behind SUSS" and on growth factor and pacing, and of what the authors' kernel
 * (SUSSdeveloper/SUSSprg, Linux 6.8) does where that is more exact:
 *
 *   - Round 1 sends the initial window. In round i the ACKs of what round i - 1 sent by its ACK clock, the blue packets, double
 *     that. How long they take to arrive, times window over blue packets, is the time that all of the window takes.
 *   - Once the last of them has arrived, the growth factor G of the round is 4 if the ACK train of the next round, which is twice as
 *     long, is predicted to last no longer than half of the minimum RTT: this one lasts no longer than a quarter (condition 1). And
 *     if the smallest RTT of the next round is predicted to be no more than an eighth above the minimum: it grows each round by as
 *     much as it did on average in the r rounds since the minimum was met (condition 2). Both are HyStart's conditions. Else
 *     G is 2.
 *   - With G of 4 the round sends twice the window more, the red packets, paced at the new window per minimum RTT: that is, in the
 *     part of the RTT which they are of the window. ACKs of blue packets are never paced, so that the next train shows the path.
 *   - Rounds 2 to 4 alone (suss_max of 3), of RTTs above 10 ms. A round with G of 2 is the last to be asked.
 *   - At a reduction the window counts as what has been sent of it.
 *
 * Decided here:
 *
 *   - The authors' kernel raises the receiver's window in the sender. Here the window stays within it, in whole segments, and
 *     follows as it opens in that round; and within three times the largest flight
 *     (draft-ietf-ccwg-ratelimited-increase).
 *   - Nothing happens between two ACKs. So red packets begin with the last blue ACK, and all of the guard interval comes
 *     after them; the paper has half of it before. And an ACK of a red packet opens the window as any other, which the target of
 *     the round has counted in; the authors hold the window there and raise it as red packets leave.
 *   - What has not left by the next round is given up, down to what doubling would have come to.
 *   - The paper's exit is a HyStart that knows of red packets. Here the algorithm's exit ends this. Where the algorithm paces at less,
 *     its rate holds, for blue packets as well.
 *   - Round 2 begins with the first ACK that finds more to send than the first window.
 *
 * A pure function over its state, as algorithms are (algorithm/algorithm.h). Windows are in segments.
 */
#ifndef ONRAMP_START_SUSS_H
#define ONRAMP_START_SUSS_H

#include "resume.h"

/* Why it is over. Numbers go out; those that there are stay. */
enum suss_end {
	SUSS_NONE,
	SUSS_EXIT,   /* slow start has ended otherwise than by a reduction */
	SUSS_LOSS,   /* a loss, mark or timeout */
	SUSS_ROUNDS, /* the last round that may quadruple is over */
	SUSS_RTT,    /* the RTT is too short */
	SUSS_TRAIN,  /* condition 1 does not hold, or the train did not come to its end */
	SUSS_DELAY,  /* condition 2 does not hold */
	SUSS_UNUSED, /* the application has less to send than the window allows */
};

struct suss {
	u32 end;	  /* enum suss_end */
	u32 round;	  /* as the paper counts them; 0: none has begun */
	u32 begin;	  /* bytes sent, modulo 2^32, before what this round's ACKs acknowledge */
	u32 blue_end;	  /* ... and up to the last of it that is blue */
	u32 round_end;	  /* ... and when the round began */
	u32 begun_us;	  /* monotonic time modulo 2^32 at which the round began */
	u32 min_us;	  /* smallest RTT of data; 0: none yet */
	u32 min_round;	  /* in which it was met */
	u32 round_min_us; /* smallest RTT of the round; 0: none yet */
	u32 flight;	  /* the largest so far, segments */
	u32 target;	  /* window at the end of a round whose G is 4, segments; 0: not decided */
	u32 unused;
};
_Static_assert(sizeof(struct suss) == 48, "no implicit padding");

/* G of a round that is not to double. */
#define SUSS_GROWTH 4
/* The last round that it may have, as the paper counts them. */
#define SUSS_LAST_ROUND 4
/* Of the minimum RTT: how long the ACK train may last. */
#define SUSS_TRAIN_PART 4
/* Of the minimum RTT: the queueing delay that ends it, as HyStart's. */
#define SUSS_DELAY_PART 8
/* A minimum RTT of no more than this is too short. */
#define SUSS_RTT_US 10000
/* The most of the largest flight. */
#define SUSS_FLIGHTS 3
/* Keeps a product within 64 bits. */
#define SUSS_RATE_WINDOW_MAX (1ULL << 40)

static __always_inline void suss_ends(struct suss *suss, u32 end)
{
	suss->end = end;
	suss->target = 0;
}

/* Segments of what a round's ACKs acknowledge. */
static __always_inline u32 suss_train(const struct suss *suss, const struct ack *ack)
{
	u32 mss = ack_mss(ack);

	return (u32)(((u64)(suss->round_end - suss->begin) + mss - 1) / mss);
}

/* A round begins. What has not left of the one before is given up. */
static __always_inline void suss_round_begins(struct suss *suss, const struct ack *ack, struct start_verdict *verdict)
{
	u32 blue = 2 * (suss->blue_end - suss->begin), sent = ack->in_flight + ack->acked;

	if (!suss->round) {
		suss->round_end = (u32)ack->bytes_acked - ack->acked * ack_mss(ack);
		blue = (u32)ack->bytes_sent - suss->round_end;
		suss->round = 1;
	} else if (!suss->target) {
		suss_ends(suss, SUSS_TRAIN);
		return;
	} else {
		/* Half of the target is where doubling would be. */
		sent = (u32)max_u64(sent, suss->target / 2);
		if (sent < ack->cwnd)
			verdict->cwnd = sent;
	}
	if (suss->round >= SUSS_LAST_ROUND) {
		suss_ends(suss, SUSS_ROUNDS);
		return;
	}
	suss->round++;
	suss->begin = suss->round_end;
	suss->round_end = (u32)ack->bytes_sent;
	suss->blue_end = suss->begin + (u32)min_u64(blue, suss->round_end - suss->begin);
	suss->begun_us = (u32)ack->now_us;
	suss->round_min_us = 0;
	suss->target = 0;
}

static __always_inline void suss_sees_rtt(struct suss *suss, const struct ack *ack)
{
	u32 rtt_us = (u32)ack->rtt_us;

	if (ack->rtt_us <= 0)
		return;
	if (!suss->round_min_us || rtt_us < suss->round_min_us)
		suss->round_min_us = rtt_us;
	if (!suss->min_us || rtt_us < suss->min_us) {
		suss->min_us = rtt_us;
		suss->min_round = suss->round;
	}
}

/* G of the round, once its blue train has arrived: why it is 2, or SUSS_NONE for 4. */
static __always_inline u32 suss_decides(const struct suss *suss, const struct ack *ack)
{
	u64 lasts_us = (u32)ack->now_us - suss->begun_us, rounds = suss->round - suss->min_round;
	u64 bytes = suss->round_end - suss->begin, blue = suss->blue_end - suss->begin;

	if (suss->min_us <= SUSS_RTT_US)
		return SUSS_RTT;
	if (ack->flags & ACK_APP_LIMITED && !(ack->flags & ACK_CWND_LIMITED))
		return SUSS_UNUSED;
	/* Neither product is larger than 2^64: 2^32 us, 2^30 bytes (RFC 7323). */
	if (lasts_us * bytes > (u64)suss->min_us * blue / SUSS_TRAIN_PART)
		return SUSS_TRAIN;
	if (!suss->round_min_us ||
	    (rounds + 1) * (suss->round_min_us - suss->min_us) > rounds * suss->min_us / SUSS_DELAY_PART)
		return SUSS_DELAY;
	return SUSS_NONE;
}

/* Bytes per second at which red packets leave. */
static __always_inline u64 suss_rate(const struct suss *suss, const struct ack *ack)
{
	return min_u64((u64)suss->target * ack_mss(ack), SUSS_RATE_WINDOW_MAX) * 1000000 / max_u64(suss->min_us, 1);
}

/*
 * One ACK in slow start, after the algorithm, which paces at a rate, bytes per second; 0: it does not. `clamp`: the most that the
 * window may be. The base adds what is acknowledged.
 */
static __always_inline void suss_on_ack(struct suss *suss, const struct ack *ack, u64 rate, u32 clamp,
					struct start_verdict *verdict)
{
	u64 most, window, ahead;
	u32 end;

	suss->flight = (u32)max_u64(suss->flight, (u64)ack->in_flight + ack->acked);
	if (!suss->round || (s32)((u32)ack->bytes_acked - suss->round_end) > 0)
		suss_round_begins(suss, ack, verdict);
	if (suss->end)
		return;
	suss_sees_rtt(suss, ack);
	if ((s32)((u32)ack->bytes_acked - suss->blue_end) < 0)
		return;
	if (!suss->target) {
		end = suss_decides(suss, ack);
		if (end) {
			suss_ends(suss, end);
			return;
		}
		suss->target = (u32)min_u64((u64)suss_train(suss, ack) * SUSS_GROWTH, NO_THRESHOLD - 1);
	}
	verdict->pacing_rate = suss_rate(suss, ack);
	if (rate && rate <= verdict->pacing_rate)
		verdict->pacing_rate = 0;
	/* The ACKs that are to come in this round open it by as much. */
	ahead = (suss->round_end - (u32)ack->bytes_acked) / ack_mss(ack) + (u64)ack->acked;
	most = min_u64((u64)suss->flight * SUSS_FLIGHTS, ack->receive_window / ack_mss(ack));
	most = min_u64(min_u64(most, clamp), ack->ssthresh);
	window = suss->target > ahead ? suss->target - ahead : 0;
	window = min_u64(window, most > ack->acked ? most - ack->acked : 0);
	if (window > ack->cwnd)
		verdict->cwnd = (u32)window;
}

/* A reduction; the threshold would be `ssthresh`, of the window. */
static __always_inline u32 suss_on_loss(const struct ack *ack, u32 ssthresh)
{
	u64 sent = ack->bytes_outstanding / ack_mss(ack);

	if (sent >= ack->cwnd)
		return ssthresh;
	return (u32)max_u64(ssthresh * sent / max_u64(ack->cwnd, 1), MIN_WINDOW);
}

#endif
