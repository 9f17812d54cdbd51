/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A slow start threshold that is an estimate of what the path holds: ahead of the window it is where slow start will
 * end, at or below it slow start ends at once (Ataei Kachooei et al. 2022: when RTT round ends). A threshold that is in force and not
 * the algorithm's own (after a timeout, or remembered from an earlier connection) is lowered, never raised.
 *
 * Use: keep the target that was set last in the algorithm's state, 0 where slow start begins; aim at each new estimate.
 */
#ifndef ONRAMP_AIM_H
#define ONRAMP_AIM_H

#include "algorithm.h"

/* Aims at so many segments, at least INITIAL_WINDOW. The outcome: OUTCOME_EXIT, `ahead`, or `kept`: nothing is set. */
static __always_inline u32 aim(u32 *target, u64 segments, u32 ahead, u32 kept, const struct ack *ack,
			       struct verdict *verdict)
{
	u32 next = (u32)min_u64(max_u64(segments, INITIAL_WINDOW), NO_THRESHOLD - 1);

	if (next > ack->ssthresh && ack->ssthresh != *target)
		return kept;
	*target = next;
	verdict->ssthresh = next;
	return next <= ack->cwnd ? OUTCOME_EXIT : ahead;
}

#endif
