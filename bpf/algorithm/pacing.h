/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * At which rate slow start lets data out (Barakat et al. 1999, second proposition): not back to back, but as fast as
 * the bottleneck takes them, so that slow start's own bursts build no queue there. Each round of ACKs gives an estimate
 * of that rate (ack_pairs.h); this is the policy of using it.
 *
 *	                window >= an eighth of estimate x RTT            window >= half of it
 *	young: unpaced ──────────────────────────────────────► probing ──────────────────────► paced
 *	                                                        112 % of the estimate           gain_pct of it
 *
 *   - Young. ACKs show the bottleneck as long as the sender does not pace. So nothing is paced until the window is an
 *     eighth of the estimated BDP (each burst builds a queue of at most a sixteenth); until then each round's estimate
 *     replaces the last. Where the application or the base paces the sender, data leave at sixteen windows per RTT
 *     meanwhile: twice the rate of the path when the window is an eighth of the BDP. Else no rate is requested, and
 *     the kernel bounds the queue of this host.
 *   - An estimate must be above min_rate.
 *   - Probing. Paced data show no more than the rate at which they left. An eighth more than the estimate leaves while
 *     the window is less than half of the BDP, with a queue of at most a twentieth of it. So an estimate that was too
 *     low rises, by no more than that in a round.
 *
 * Use: embed a struct pacing, call pacing_restart when slow start begins, pacing_round with each estimate, and
 * pacing_rate with every ACK for the verdict's rate.
 */
#ifndef ONRAMP_PACING_H
#define ONRAMP_PACING_H

#include "algorithm.h"

#define PACING_READS (READS(min_rtt_us) | READS(cwnd) | READS(mss) | READS(flags))

/* Spacing begins at a window of this part of the bandwidth-delay product. */
#define PACING_FROM_PART 8
/* Windows per RTT at which data leave before, where the application or the base paces. */
#define PACING_YOUNG_WINDOWS 16
/* Of the estimate, while the window is less than half of the path. */
#define PACING_PROBE_PCT 112
/* Keeps a rate times an RTT within 64 bits: 17 GB/s, 9 minutes. */
#define PACING_RATE_MAX (1ULL << 34)
#define PACING_RTT_MAX_US (1U << 29)
/* More than a connection can have in flight. */
#define PACING_BYTES_MAX (1ULL << 40)

/* The parameters of the algorithms that can pace by ACK pairs, for their NAME_PARAMETERS. */
#define PACING_PARAMETERS(X)                                                                                           \
	X(pacing, "", 0, 0, 1, "off|on", "pace slow start at the rate that ACK pairs show")                            \
	X(pacing_gain_pct, "percent", 100, 100, 200, "", "pacing rate in hundredths of that rate")

struct pacing {
	u32 estimate; /* kB/s; 0: none */
	u32 paced;    /* whether the window has been large enough for spacing */
};

static __always_inline void pacing_restart(struct pacing *pacing)
{
	pacing->estimate = 0;
	pacing->paced = 0;
}

/* The estimate, bytes per second; 0: none. */
static __always_inline u64 pacing_estimate(const struct pacing *pacing)
{
	return (u64)pacing->estimate * 1000;
}

/* Bytes that a path of this rate holds; 0 while its RTT is not known. */
static __always_inline u64 pacing_path_bytes(u64 rate, const struct ack *ack)
{
	return min_u64(rate, PACING_RATE_MAX) * min_u64(ack->min_rtt_us, PACING_RTT_MAX_US) / 1000000;
}

/*
 * There is an estimate. `rate`: what the round showed, bytes per second, 0 for nothing; `settled`: whether that is the
 * bottleneck's, or only what it carries at least; `over`: whether the round is over, without which no estimate rises.
 */
static __always_inline void pacing_round(struct pacing *pacing, u64 rate, bool settled, bool over, u64 min_rate)
{
	u64 now = pacing_estimate(pacing);
	u64 next = min_u64(rate, PACING_RATE_MAX);

	if (pacing->paced && !over)
		return;
	if (pacing->paced)
		next = max_u64(now, min_u64(next, now * PACING_PROBE_PCT / 100));
	else if (!settled || rate <= min_rate)
		next = 0;
	pacing->estimate = (u32)(next / 1000);
}

/* The rate of a flow that is not paced yet, bytes per second; 0: as the host has it. */
static __always_inline u64 pacing_young(const struct ack *ack)
{
	u64 window;

	if (!(ack->flags & ACK_PACED) || !ack->min_rtt_us)
		return 0;
	window = min_u64((u64)ack->cwnd * ack->mss, PACING_BYTES_MAX);
	return min_u64(window * 1000000 / ack->min_rtt_us, PACING_RATE_MAX) * PACING_YOUNG_WINDOWS;
}

/* Whether so many bytes are fewer than the path holds by the estimate (pacing_path_bytes), without its division. */
static __always_inline bool pacing_below_path(const struct pacing *pacing, u64 bytes, const struct ack *ack)
{
	return (bytes + 1) * 1000 <= pacing->estimate * min_u64(ack->min_rtt_us, PACING_RTT_MAX_US);
}

/* The rate until the next ACK, bytes per second; 0: as the host has it. */
static __always_inline u64 pacing_rate(struct pacing *pacing, u64 gain_pct, const struct ack *ack)
{
	u64 window;

	if (!pacing->estimate)
		return pacing_young(ack);
	window = min_u64((u64)ack->cwnd * ack->mss, PACING_BYTES_MAX);
	if (!pacing->paced) {
		if (pacing_below_path(pacing, window * PACING_FROM_PART, ack))
			return pacing_young(ack);
		pacing->paced = 1;
	}
	if (gain_pct < PACING_PROBE_PCT && pacing_below_path(pacing, window * 2, ack))
		gain_pct = PACING_PROBE_PCT;
	/* A hundredth of 1000 bytes per second. */
	return max_u64(pacing->estimate * 10 * gain_pct, 1);
}

#endif
