/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The rate of the bottleneck from the times of ACKs (Ataei Kachooei et al. 2022, figures 9 and 10): segments that queue
 * there leave it spaced by their transmission times, and so do their ACKs. What two ACKs acknowledge between them,
 * divided by the time between them, is a rate; of the rates of a round the middle ones are averaged, which filters
 * those that the way back made too low or too high.
 *
 *	       round: all that was outstanding when it began            pause: nothing was there to be sent
 *	|----.----.----.----.----.----.----.----.----.----.----.----|                             |----.----
 *	ACKs, at most sixteen pairs, each of a sixteenth of the round's bytes
 *
 *   - A round is what was outstanding when it began; its pairs begin and end within it. The time between its last ACK
 *     and the next one's first shows the window, not the bottleneck.
 *   - A pair is as long as the round allows: at least a sixteenth of its bytes. So it grows with the window, and what
 *     the way back does to single ACKs counts for less and less.
 *   - A pair ends after a silence. ACKs come in batches where receivers, devices or links join them; a pair from the
 *     first ACK of one batch to the first of another has both the bytes and the time of the batches between. So it ends
 *     with an ACK that came at least half as long after the one before as any other in the pair; half of that half if
 *     the pair has grown to twice its least bytes, and so on, so that one long silence is soon forgotten.
 *   - A quarter of the rates is left out at either end, and the others' times per byte are averaged. A round is not
 *     slower than all its bytes over all its time, one pair more than was measured allowed for.
 *   - A silence is measured modulo 2^32 us, which is 71 minutes; the time of a pair is not.
 *   - An ACK that acknowledges nothing new is no part of a pair. What follows a moment with nothing in flight, or with
 *     the sender limited by the application, shows how fast the sender was: no pair.
 *
 * What a round shows when it is over:
 *
 *   - Nothing (coarse) if it has fewer than four pairs, if they leave out more than a quarter of its bytes, if the
 *     middle ones differ by more than twice, as where the way back has changed its pace meanwhile, or if one silence is
 *     more than a sixth of it: jitter or batches are then as long as what is measured. The last silence does not count,
 *     which may be a receiver's that waits for a second segment.
 *   - A lower bound (sender_limited) if it was sent no faster than it was acknowledged, paced by a pacing rate, the
 *     application or the receiver's window. When it left follows from the RTT: over the time that the ACKs took less what
 *     the RTT rose by meanwhile. That must be no more than four fifths of the former. The RTT of a single segment that is
 *     acknowledged after the longest silence of the round does not count: the receiver may have waited for a second.
 *   - The rate of the bottleneck (settled) if the round before agrees within a quarter, or if it has eight pairs and no
 *     silence is more than a twelfth of it; else it is unsettled. While jitter is longer than rounds, rates rise with
 *     the window.
 *
 * And from half of its bytes on, with each pair: the rate of the bottleneck if what there is of the round is settled by
 * the same rules, the last silence counted. So a burst that would overflow a small queue is known before it has left.
 *
 * Use: embed a struct ack_pairs in the algorithm's state; ack_pairs_restart it when slow start begins; give
 * ack_pairs_on_ack every ACK, also those without an RTT sample. Where it brings news, `result` says how well ACKs determine
 * the rate that ack_pairs_rate has.
 */
#ifndef ONRAMP_ACK_PAIRS_H
#define ONRAMP_ACK_PAIRS_H

#include "round.h"

#define ACK_PAIRS_READS (ROUND_READS | READS(now_us) | READS(flags))

/* Pairs in a round, at most, and at least. */
#define ACK_PAIRS_MAX 16
#define ACK_PAIRS_LEAST 4
/* Pairs with which a round may show a rate before it is over, or without the previous round. */
#define ACK_PAIRS_ENOUGH 8
/* Parts of a round that a silence must not exceed: with a round before that agrees, and without. */
#define ACK_PAIRS_SILENCE_PART 6
#define ACK_PAIRS_ALONE_PART 12
/* Time per byte is in picoseconds: 32 bits hold rates from 233 bytes per second on, and 17 GB/s, the fastest, to 2 %. */
#define ACK_PAIRS_PICOSECONDS 1000000000000ULL
#define ACK_PAIRS_FASTEST 59
#define ACK_PAIRS_NONE 0xffffffffU

/* What an ACK brings. */
enum ack_pairs_news {
	ACK_PAIRS_NO_NEWS,
	ACK_PAIRS_SOONER, /* the current round already shows the rate of the bottleneck */
	ACK_PAIRS_OVER,	  /* a round ended with the ACK before */
};

/* How well the newest round with a result, the current or the previous one, determines the bottleneck's rate. */
enum ack_pairs_result {
	ACK_PAIRS_COARSE,	  /* not at all */
	ACK_PAIRS_SENDER_LIMITED, /* it is no lower */
	ACK_PAIRS_UNSETTLED,	  /* the previous round showed another */
	ACK_PAIRS_SETTLED,
};

struct ack_pairs {
	u64 at_us;		  /* arrival of the ACK that begins the current pair */
	u32 last_us;		  /* of the newest that acknowledged something, modulo 2^32 */
	u32 acked;		  /* bytes acknowledged when the pair began, modulo 2^32, as are the next three */
	u32 last_acked;		  /* newest */
	u32 round_begin;	  /* when the round began */
	u32 round_end;		  /* as in round.h */
	u32 pair_bytes;		  /* least of a pair of this round */
	u32 silence_us;		  /* longest between two ACKs of the current pair, or before it */
	u32 newest_silence_us;	  /* between the round's two newest ACKs */
	u32 longest_us;		  /* longest silence of the round before that */
	u32 span_us;		  /* from the round's first ACK to its newest */
	u32 first_rtt_us;	  /* sample of the round's first ACK; 0: none */
	u32 last_rtt_us;	  /* newest of the round; 0: none */
	u32 spent;		  /* picoseconds per byte by the newest news; 0: none */
	u32 before;		  /* by the round that ended last, if it was not limited by the sender; 0: none */
	u32 rounds;		  /* ended since slow start began */
	u8 result;		  /* enum ack_pairs_result, of the newest news */
	u8 begun;		  /* whether there is a round */
	u8 paired;		  /* whether there is an open pair */
	u8 count;		  /* pairs of the current round */
	u32 pairs[ACK_PAIRS_MAX]; /* of the current round, picoseconds per byte; ACK_PAIRS_NONE: not there yet */
};

_Static_assert(sizeof(struct ack_pairs) == 136, "the state of every flow of what uses them grows");

static __always_inline void ack_pairs_restart(struct ack_pairs *pairs)
{
	pairs->spent = 0;
	pairs->before = 0;
	pairs->rounds = 0;
	pairs->result = ACK_PAIRS_COARSE;
	pairs->begun = 0;
	pairs->paired = 0;
	pairs->count = 0;
}

/* The rates of the round's pairs, bit/s, in their order; returns their number. */
static __always_inline u32 ack_pairs_rates(const struct ack_pairs *pairs, u64 *rates)
{
	u32 count = 0;

	for (u32 i = 0; i < ACK_PAIRS_MAX; i++) {
		if (pairs->pairs[i] != ACK_PAIRS_NONE)
			rates[count++] = 8 * ACK_PAIRS_PICOSECONDS / max_u64(pairs->pairs[i], 1);
	}
	return count;
}

/* The rate by the newest result, however well it is determined, bytes per second; 0: none. */
static __always_inline u64 ack_pairs_rate(const struct ack_pairs *pairs)
{
	return pairs->spent ? ACK_PAIRS_PICOSECONDS / pairs->spent : 0;
}

/*
 * Mean of the middle half of the round's pairs, picoseconds per byte; 0: its ends are more than twice apart. Each is
 * ranked by counting how many are below it; signs instead of comparisons, so that the kernel's verifier has no branches
 * to follow.
 */
static __always_inline u64 ack_pairs_middle(const struct ack_pairs *pairs)
{
	u64 from = pairs->count / 4, to = pairs->count - from;
	u64 sum = 0, least = 0, most = 0;

	KEEP_LOOP for (u32 i = 0; i < ACK_PAIRS_MAX; i++)
	{
		u64 rank = 0, below, above;

		KEEP_LOOP for (u32 j = 0; j < ACK_PAIRS_MAX; j++)
		{
			rank += ((u64)pairs->pairs[j] - pairs->pairs[i] - (j < i)) >> 63;
		}
		below = (rank - from) >> 63;
		above = (to - 1 - rank) >> 63;
		sum += pairs->pairs[i] * (1 - below) * (1 - above);
		least += pairs->pairs[i] * (((rank - from - 1) >> 63) - below);
		most += pairs->pairs[i] * (((to - 2 - rank) >> 63) - above);
	}
	return most > least * 2 ? 0 : sum / max_u64(to - from, 1);
}

/* Picoseconds per byte of the current round, of which this is the longest silence; 0: it is too coarse. */
static __always_inline u32 ack_pairs_spent(const struct ack_pairs *pairs, u64 longest_us)
{
	u32 left = pairs->last_acked - pairs->acked;
	u64 count = pairs->count;
	u64 bytes = max_u64(pairs->last_acked - pairs->round_begin, 1);
	u64 whole = pairs->span_us * 1000000ULL / bytes * (count + 1) / max_u64(count, 1);
	u64 middle;

	if (count < ACK_PAIRS_LEAST || left > (u64)pairs->pair_bytes * (ACK_PAIRS_MAX / 4) ||
	    longest_us * ACK_PAIRS_SILENCE_PART > pairs->span_us)
		return 0;
	middle = ack_pairs_middle(pairs);
	return middle ? (u32)max_u64(min_u64(middle, whole), ACK_PAIRS_FASTEST) : 0;
}

/* Whether two times per byte differ by no more than a quarter of the lesser. */
static __always_inline bool ack_pairs_agree(u64 one, u64 other)
{
	return one <= other + other / 4 && other <= one + one / 4;
}

/* Whether the current round was sent no faster than it was acknowledged. */
static __always_inline bool ack_pairs_sender_limits(const struct ack_pairs *pairs)
{
	s64 rose_us = (s64)pairs->last_rtt_us - pairs->first_rtt_us;

	return pairs->first_rtt_us && pairs->last_rtt_us && rose_us * 5 < (s64)pairs->span_us;
}

/* How well the current round, of which this is the longest silence, determines the rate computed from it. */
static __always_inline u8 ack_pairs_evaluate(const struct ack_pairs *pairs, u32 spent, u64 longest_us)
{
	bool alone = pairs->count >= ACK_PAIRS_ENOUGH && longest_us * ACK_PAIRS_ALONE_PART <= pairs->span_us;

	if (!spent)
		return ACK_PAIRS_COARSE;
	if (ack_pairs_sender_limits(pairs))
		return ACK_PAIRS_SENDER_LIMITED;
	if (alone || (pairs->before && ack_pairs_agree(spent, pairs->before)))
		return ACK_PAIRS_SETTLED;
	return ACK_PAIRS_UNSETTLED;
}

/* Updates the result: fully if the round is over, else only with the rate of the bottleneck. True: it has. */
__noinline bool ack_pairs_estimate(struct ack_pairs *pairs, bool over)
{
	u64 longest_us;
	u32 spent;
	u8 result;

	if (!pairs)
		return false;
	/* Ranking the pairs takes thousands of instructions. */
	if (!over && ack_pairs_sender_limits(pairs))
		return false;
	longest_us = over ? pairs->longest_us : max_u64(pairs->longest_us, pairs->newest_silence_us);
	spent = ack_pairs_spent(pairs, longest_us);
	result = ack_pairs_evaluate(pairs, spent, longest_us);
	if (!over && result != ACK_PAIRS_SETTLED)
		return false;
	pairs->spent = spent;
	pairs->result = result;
	return true;
}

static __always_inline void ack_pairs_begin_pair(struct ack_pairs *pairs, const struct ack *ack, u32 silence_us)
{
	pairs->at_us = ack->now_us;
	pairs->acked = (u32)ack->bytes_acked;
	pairs->silence_us = silence_us;
	pairs->paired = 1;
}

/* A round begins with this ACK; the one before, if there is one, has been taken. */
static __always_inline void ack_pairs_turn(struct ack_pairs *pairs, const struct ack *ack)
{
	if (pairs->begun) {
		pairs->before = pairs->result == ACK_PAIRS_SENDER_LIMITED ? 0 : pairs->spent;
		pairs->rounds++;
	}
	pairs->begun = 1;
	pairs->round_begin = (u32)ack->bytes_acked;
	pairs->round_end = round_end(ack);
	pairs->pair_bytes = (u32)max_u64(ack->bytes_outstanding / ACK_PAIRS_MAX, 1);
	pairs->last_us = (u32)ack->now_us;
	pairs->last_acked = pairs->round_begin;
	pairs->newest_silence_us = 0;
	pairs->longest_us = 0;
	pairs->span_us = 0;
	pairs->first_rtt_us = ack->rtt_us > 0 ? (u32)ack->rtt_us : 0;
	pairs->last_rtt_us = pairs->first_rtt_us;
	pairs->count = 0;
	for (u32 i = 0; i < ACK_PAIRS_MAX; i++)
		pairs->pairs[i] = ACK_PAIRS_NONE;
	ack_pairs_begin_pair(pairs, ack, 0);
}

/* Keeps a pair of so many bytes and microseconds, neither of them 0. True: there are enough for an early result. */
static __always_inline bool ack_pairs_keep(struct ack_pairs *pairs, u32 bytes, u64 us)
{
	u64 spent = min_u64(us, 1ULL << 40) * 1000000 / (bytes ? bytes : 1);
	u32 at = pairs->count;

	/* A round of a few bytes could have more; and the kernel's verifier must see the bound. */
	if (at >= ACK_PAIRS_MAX)
		return false;
	pairs->pairs[at] = (u32)max_u64(min_u64(spent, ACK_PAIRS_NONE - 1), ACK_PAIRS_FASTEST);
	pairs->count = (u8)(at + 1);
	return at + 1 >= ACK_PAIRS_ENOUGH;
}

/* An ACK with which the current pair has its least bytes, after a silence. True: it may give an early result. */
__noinline bool ack_pairs_end_pair(struct ack_pairs *pairs, const struct ack *ack, u32 silence_us)
{
	bool early = false;
	u32 bytes, halvings;
	u64 us;

	if (!pairs || !ack)
		return false;
	bytes = (u32)ack->bytes_acked - pairs->acked;
	halvings = (u32)min_u64(bytes / (pairs->pair_bytes ? pairs->pair_bytes : 1), 31);
	us = ack->now_us - pairs->at_us;
	if (!us || silence_us < pairs->silence_us >> halvings) {
		pairs->silence_us = (u32)max_u64(pairs->silence_us, silence_us);
		return false;
	}
	if (!(ack->flags & ACK_APP_LIMITED))
		early = ack_pairs_keep(pairs, bytes, us);
	ack_pairs_begin_pair(pairs, ack, silence_us);
	return early;
}

/* An ACK within the round. True: it may give an early result. */
static __always_inline bool ack_pairs_measure(struct ack_pairs *pairs, const struct ack *ack)
{
	u32 acked = (u32)ack->bytes_acked;
	u32 silence_us = (u32)ack->now_us - pairs->last_us;
	u32 span_us = pairs->span_us + silence_us;

	if (acked == pairs->last_acked)
		return false;
	pairs->last_us = (u32)ack->now_us;
	pairs->last_acked = acked;
	if (pairs->newest_silence_us > pairs->longest_us)
		pairs->longest_us = pairs->newest_silence_us;
	pairs->newest_silence_us = silence_us;
	pairs->span_us = span_us < silence_us ? ~0U : span_us;
	if (ack->rtt_us > 0 && (ack->acked != 1 || silence_us <= pairs->longest_us))
		pairs->last_rtt_us = (u32)ack->rtt_us;

	if (!pairs->paired) {
		ack_pairs_begin_pair(pairs, ack, 0);
		return false;
	}
	if (acked - pairs->acked >= pairs->pair_bytes)
		return ack_pairs_end_pair(pairs, ack, silence_us);
	if (silence_us > pairs->silence_us)
		pairs->silence_us = silence_us;
	return false;
}

/* One ACK: enum ack_pairs_news. */
static __always_inline u32 ack_pairs_on_ack(struct ack_pairs *pairs, const struct ack *ack)
{
	u32 news = ACK_PAIRS_NO_NEWS;

	if (pairs->begun && !round_is_over(pairs->round_end, ack)) {
		if (ack_pairs_measure(pairs, ack) && ack_pairs_estimate(pairs, false))
			news = ACK_PAIRS_SOONER;
	} else {
		if (pairs->begun) {
			ack_pairs_estimate(pairs, true);
			news = ACK_PAIRS_OVER;
		}
		ack_pairs_turn(pairs, ack);
	}
	if (ack->flags & ACK_APP_LIMITED || !ack->bytes_outstanding)
		pairs->paired = 0;
	return news;
}

#endif
