/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The rate of the bottleneck from pairs of ACKs (Ataei Kachooei et al. 2022, figures 9 and 10): segments that queue there leave it
 * spaced by their transmission times, and so do their ACKs. Two consecutive ACKs tell a rate, the bytes that the later
 * one acknowledges divided by the time between them; the median of a round's rates filters those that the way back
 * made too low or too high.
 *
 *   - An ACK that acknowledges nothing new is no part of a pair.
 *   - ACKs that arrive less than pair_min_us after the first of a pair are one with it: their bytes are counted with
 *     the next. 1 us divides by nothing; a way back that releases ACKs together (aggregation, jitter) asks for
 *     more than such a batch lasts, or the median is the speed of the batch.
 *   - What follows a moment with nothing in flight, or with the sender limited by the application, tells how fast the
 *     sender was, not the bottleneck: no pair.
 *   - A round is the time until something is acknowledged that was not yet sent when it began, an RTT.
 *
 * Use: embed a struct ack_pairs in the algorithm's state; ack_pairs_restart it when slow start begins; give
 * ack_pairs_on_ack every ACK, also those without an RTT sample. Where it returns true a round has just ended, and
 * ack_pairs_median and ack_pairs_samples tell of that round until the next ACK; at other times they tell of the round
 * under way so far. Rates are bytes per second; 0: no pairs.
 */
#ifndef ONRAMP_ACK_PAIRS_H
#define ONRAMP_ACK_PAIRS_H

#include "algorithm.h"
#include "rate_sketch.h"

struct ack_pairs {
	u64 at_us;     /* arrival of the ACK that begins the next pair */
	u64 acked;     /* bytes acknowledged by it and all before */
	u64 round_end; /* bytes acknowledged beyond which the round ends */
	u32 paired;    /* whether the next ACK makes a pair with that one */
	u32 begun;     /* whether there is a round */
	u32 rounds;    /* ended since slow start began */
	u32 over;      /* whether the round in the sketch is one of them */
	struct rate_sketch sketch;
};

/* The parameter of the algorithms that embed it, for their NAME_PARAMETERS. */
#define ACK_PAIRS_PARAMETERS(X)                                                                                        \
	X(pair_min_us, "us", 1, 1, 1000000, "",                                                                        \
	  "ACKs closer together than this are one: longer than the way back's batches of ACKs last")

/* More bytes than any two ACKs can be apart: a connection's window is below 1 GiB (RFC 7323). */
#define ACK_PAIRS_BYTES_MAX (1ULL << 40)

static __always_inline void ack_pairs_restart(struct ack_pairs *pairs)
{
	pairs->paired = 0;
	pairs->begun = 0;
	pairs->rounds = 0;
	pairs->over = 0;
	rate_sketch_clear(&pairs->sketch);
}

static __always_inline u64 ack_pairs_median(const struct ack_pairs *pairs)
{
	return rate_sketch_median(&pairs->sketch);
}

static __always_inline u32 ack_pairs_samples(const struct ack_pairs *pairs)
{
	return pairs->sketch.samples;
}

/* Measures the pair that this ACK ends, if it ends one, and makes it the first of the next. */
static __always_inline void ack_pairs_measure(struct ack_pairs *pairs, const struct ack *ack, u64 pair_min_us)
{
	s64 bytes = (s64)(ack->bytes_acked - pairs->acked);
	s64 us = (s64)(ack->now_us - pairs->at_us);
	bool limited = ack->flags & ACK_APP_LIMITED;
	bool apart = bytes > 0 && us >= (s64)max_u64(pair_min_us, 1);

	if (pairs->paired && apart && !limited)
		rate_sketch_insert(&pairs->sketch,
				   min_u64((u64)bytes, ACK_PAIRS_BYTES_MAX) * 1000000 / max_u64((u64)us, 1));
	if (limited || !ack->bytes_outstanding) {
		pairs->paired = 0;
		return;
	}
	if (pairs->paired && !apart)
		return;
	pairs->at_us = ack->now_us;
	pairs->acked = ack->bytes_acked;
	pairs->paired = 1;
}

/* One ACK. True: it is the last of a round, whose pairs can now be read. */
static __always_inline bool ack_pairs_on_ack(struct ack_pairs *pairs, const struct ack *ack, u64 pair_min_us)
{
	if (pairs->over) {
		pairs->over = 0;
		rate_sketch_clear(&pairs->sketch);
	}
	ack_pairs_measure(pairs, ack, pair_min_us);
	if (pairs->begun && (s64)(ack->bytes_acked - pairs->round_end) <= 0)
		return false;
	pairs->over = pairs->begun;
	pairs->rounds += pairs->begun;
	pairs->begun = 1;
	pairs->round_end = ack->bytes_acked + ack->bytes_outstanding;
	return pairs->over;
}

#endif
