/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A slow start threshold that is an estimate of what the path holds (Ataei Kachooei et al. 2022): the window at which
 * slow start is to end, at once where it has passed it. It is kept to oneself until the window is about to reach it:
 * from half of a threshold on the kernel paces by 120 % of the window instead of 200 %, where it paces, and the last
 * doubling would take four round trips; and one that a loss interrupts would come back with its undo, as another
 * control's. A threshold in force that is not the algorithm's own (after a timeout, or remembered from an earlier
 * connection) is lowered, never raised.
 *
 * Use: keep the target in the algorithm's state, 0 where slow start begins; aim at each new estimate, and ask
 * aim_reached with every ACK.
 */
#ifndef ONRAMP_AIM_H
#define ONRAMP_AIM_H

#include "algorithm.h"

#define AIM_READS (READS(cwnd) | READS(ssthresh))

/* A window of so many segments as a threshold: at least INITIAL_WINDOW, and less than none. */
static __always_inline u32 aim_window(u64 segments)
{
	return (u32)min_u64(max_u64(segments, INITIAL_WINDOW), NO_THRESHOLD - 1);
}

/* Aims at so many segments, at least INITIAL_WINDOW. The outcome: `ahead`, or `kept`: a lower threshold is in force. */
static __always_inline u32 aim(u32 *target, u64 segments, u32 ahead, u32 kept, const struct ack *ack)
{
	u32 next = aim_window(segments);
	bool own = ack->ssthresh == *target;

	if (next > ack->ssthresh && !own)
		return kept;
	*target = next;
	return ahead;
}

/*
 * Sets the threshold if what this ACK acknowledges takes the window to the target, or it is there. True: it is there,
 * and slow start ends.
 */
static __always_inline bool aim_reached(u32 target, const struct ack *ack, struct verdict *verdict)
{
	if (!target || (u64)ack->cwnd + ack->acked < target)
		return false;
	verdict->ssthresh = target;
	return target <= ack->cwnd;
}

#endif
