/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * At which rate slow start lets data out (Barakat et al. 1999, second proposition): not back to back, but as fast as the
 * bottleneck takes them, so that its queue does not build up by slow start's own bursts. The rate is somebody else's
 * estimate, the median that ack_pairs.h finds in every round; this is the policy of using it.
 *
 *	                window >= an eighth of estimate x RTT
 *	young: unspaced ──────────────────────────────────────► spaced: at gain_pct of the estimate, which may only rise
 *
 *   - Young. Trains of ACKs tell of the bottleneck as long as the sender does not space them itself. So nothing is
 *     spaced until the window is an eighth of what the estimate says the path holds (each burst builds a queue of at
 *     most a sixteenth); until then each round's median replaces the last, and trains become long compared with the
 *     jitter of the way back. It is also what doubling needs.
 *   - Jittered. While trains are short compared with the jitter, medians are too low and rise with the window. So the
 *     last two must agree within a quarter to be an estimate. It must also be above min_rate, and its product with the
 *     RTT must be more than the unspaced window.
 *   - Spaced. From here on pairs of ACKs can tell no more than the rate at which data leave: a lower median says
 *     nothing, a higher one does.
 *
 * Use: embed a struct pacing, pacing_restart it when slow start begins, pacing_round it with each round's median, ask
 * pacing_rate with every ACK and answer that as the verdict's.
 */
#ifndef ONRAMP_PACING_H
#define ONRAMP_PACING_H

#include "algorithm.h"

/* Leaves as it comes, whoever else paces the sender. */
#define PACING_UNLIMITED (~0ULL)
/* Spacing begins at a window of this part of the bandwidth-delay product. */
#define PACING_FROM_PART 8
/* Keeps a rate times an RTT within 64 bits: 17 GB/s, 17 minutes. */
#define PACING_RATE_MAX (1ULL << 34)
#define PACING_RTT_MAX_US (1U << 29)

/* The parameters of the algorithms that space by ACK pairs if told to, for their NAME_PARAMETERS. */
#define PACING_PARAMETERS(X)                                                                                           \
	X(pacing, "", 0, 0, 1, "off|on", "space what slow start sends at the median rate of ACK pairs (spacing)")      \
	X(pacing_gain_pct, "percent", 100, 100, 200, "", "spacing rate in hundredths of that median")

struct pacing {
	u64 estimate; /* bytes per second; 0: none */
	u64 median;   /* of the round that ended last, bytes per second; 0: none */
	u32 spaced;   /* whether the window has been large enough for spacing */
	u32 unused;
};

static __always_inline void pacing_restart(struct pacing *pacing)
{
	pacing->estimate = 0;
	pacing->median = 0;
	pacing->spaced = 0;
}

/* Bytes that a path of this rate holds; 0 while its RTT is not known. */
static __always_inline u64 pacing_path_bytes(u64 rate, const struct ack *ack)
{
	return min_u64(rate, PACING_RATE_MAX) * min_u64(ack->min_rtt_us, PACING_RTT_MAX_US) / 1000000;
}

/* A round is over, and this is the median of its pairs, bytes per second; 0: it had none. */
static __always_inline void pacing_round(struct pacing *pacing, u64 median, u64 min_rate, const struct ack *ack)
{
	u64 before = pacing->median;
	bool agree, fits;

	pacing->median = median;
	if (pacing->spaced) {
		pacing->estimate = max_u64(pacing->estimate, median);
		return;
	}
	agree = median <= before + before / 4 && before <= median + median / 4;
	fits = pacing_path_bytes(median, ack) >= (u64)ack->cwnd * ack->mss;
	pacing->estimate = agree && fits && median > min_rate ? median : 0;
}

/* The rate until the next ACK, bytes per second. */
static __always_inline u64 pacing_rate(struct pacing *pacing, u64 gain_pct, const struct ack *ack)
{
	if (!pacing->estimate)
		return PACING_UNLIMITED;
	if (!pacing->spaced)
		pacing->spaced =
			(u64)ack->cwnd * ack->mss * PACING_FROM_PART >= pacing_path_bytes(pacing->estimate, ack);
	return pacing->spaced ? min_u64(pacing->estimate, PACING_RATE_MAX) * gain_pct / 100 : PACING_UNLIMITED;
}

#endif
