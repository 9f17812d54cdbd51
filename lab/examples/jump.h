/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A start at once with the window that a rate and the minimum RTT make, paced at that rate for a round trip; then CUBIC's slow start
 * with its HyStart goes on. What scubic.h and flash.h share; where they have the rate from is theirs. afstart.h takes its window to its
 * target likewise.
 *
 * Their authors raise the receiver's window in the sender. Here the window stays within it, in whole segments, and follows as it opens
 * in that round trip.
 */
#ifndef ONRAMP_JUMP_H
#define ONRAMP_JUMP_H

#include "hystart.h"

#define JUMP_TRAITS TRAIT_PACES
#define JUMP_READS                                                                                                     \
	(HYSTART_READS | READS(acked) | READS(bytes_sent) | READS(in_flight) | READS(mss) | READS(receive_window))

enum jump_phase { JUMP_BEFORE, JUMP_BEGUN, JUMP_OVER };

struct jump {
	struct hystart hystart;
	u64 rate;   /* bytes per second */
	u32 target; /* segments */
	u32 end;    /* of the round trip, as in round.h */
	u32 phase;  /* enum jump_phase */
	u32 unused;
};

/* Keeps products within 64 bits: bytes per second, us. */
#define JUMP_RATE_MAX (1ULL << 36)
#define JUMP_RTT_MAX (1U << 24)

/* What so much holds, segments. */
static __always_inline u32 jump_target(u64 rate, u64 rtt_us, const struct ack *ack)
{
	u64 bytes = min_u64(rate, JUMP_RATE_MAX) * min_u64(rtt_us, JUMP_RTT_MAX) / 1000000;

	return (u32)min_u64(bytes / ack_mss(ack), NO_THRESHOLD - 1);
}

/* It begins with this ACK, unless there is nothing to gain. */
static __always_inline void jump_begin(struct jump *jump, u64 rate, u32 target, const struct ack *ack)
{
	jump->phase = target > ack->cwnd ? JUMP_BEGUN : JUMP_OVER;
	jump->rate = rate;
	jump->target = target;
	jump->end = round_end(ack);
}

/* The window goes to so many segments at once, no further than the receiver's in whole ones. */
static __always_inline void jump_goes(u32 target, const struct ack *ack, struct verdict *verdict)
{
	u32 window = (u32)min_u64(target, ack->receive_window / ack_mss(ack));

	if (window > ack->cwnd)
		verdict->cwnd = window;
}

/* One ACK: window and rate of the jump while it lasts, and HyStart's exit. */
static __always_inline void jump_on_ack(struct jump *jump, const struct hystart_params *params, const struct ack *ack,
					struct verdict *verdict)
{
	if (jump->phase == JUMP_BEGUN && round_is_over(jump->end, ack))
		jump->phase = JUMP_OVER;
	if (jump->phase == JUMP_BEGUN) {
		verdict->pacing_rate = jump->rate;
		jump_goes(jump->target, ack, verdict);
	}
	hystart_on_ack(&jump->hystart, params, ack, verdict);
	/* The threshold is the window that HyStart has seen. */
	if (verdict->ssthresh)
		verdict->cwnd = 0;
}

#endif
