/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Doze: an algorithm that measures rounds need not look at every ACK of a large window. It looks again after a part of the
 * round that it chooses, and before that at any ACK that has no RTT sample, acknowledges out of order, or comes after a pause as
 * long as it has set, on this host's clock or on the receiver's. Over the others it passes: what it keeps of them is their
 * number, and of the newest when it came.
 *
 *	ACKs     | | | | | | | |   | | | | | | |      | | | | |
 *	         ▲               ▲             ▲      ▲
 *	         looks, dozes    a part later  later  after a long pause
 *
 * It is the same whoever does it: where nobody else wants to see the ACKs the shell passes over them, and does not even look
 * up the flow (shell/sleep.h).
 *
 * Use: with TRAIT_DOZES the state has a `struct doze doze`. doze_restart it when slow start begins; nothing changes and the
 * verdict is as before where doze_passes_over says so; doze_looks ends every other ACK, and after it the state may set `acked`,
 * `pause_us` and `ticks`, or the next ACK is looked at.
 */
#ifndef ONRAMP_DOZE_H
#define ONRAMP_DOZE_H

#include "round.h"

#define DOZE_READS (RECEIVED_READS | READS(now_us) | READS(receiver_clock))

#define DOZE_PAUSE_MAX_US ((1U << 24) - 1)
#define DOZE_TICKS_MAX ((1U << 8) - 1)
/* ACKs that are passed over in a row, at most. */
#define DOZE_PASSED_MAX 0xffff

struct doze {
	u32 acked;	   /* bytes acknowledged with which it is over, modulo 2^32 */
	u32 pause_us : 24; /* pause with which it is over; 0: no ACK is passed over */
	u32 ticks : 8;	   /* the same on the receiver's clock */
	u32 last_us;	   /* arrival of the newest ACK, modulo 2^32 */
	u32 last_rtt_us;   /* RTT of the newest that has one */
	u16 last_clock;	   /* the receiver's clock with the newest, modulo 2^16 */
	u16 passed;	   /* ACKs that were passed over since one was looked at */
};

static __always_inline void doze_restart(struct doze *doze)
{
	doze->pause_us = 0;
	doze->last_rtt_us = ~0U;
	doze->passed = 0;
}

/* Time since the newest ACK. */
static __always_inline u32 doze_pause_us(const struct doze *doze, u64 now_us)
{
	return (u32)now_us - doze->last_us;
}

/* Ticks of the receiver's clock since. */
static __always_inline u32 doze_ticks(const struct doze *doze, u32 receiver_clock)
{
	return (u16)(receiver_clock - doze->last_clock);
}

/* It is over when so many bytes more are acknowledged, at the latest. */
static __always_inline void doze_at_most(struct doze *doze, const struct ack *ack, u64 bytes)
{
	if (bytes < doze->acked - (u32)ack->bytes_acked)
		doze->acked = (u32)ack->bytes_acked + (u32)bytes;
}

/* An ACK, of a receiver that has all that is not in flight in order. True: it has been passed over. */
static __always_inline bool doze_passes(struct doze *doze, u64 now_us, u32 acked, s32 rtt_us, u32 receiver_clock)
{
	if (doze_pause_us(doze, now_us) >= doze->pause_us || (s32)(acked - doze->acked) >= 0 || rtt_us < 0 ||
	    doze_ticks(doze, receiver_clock) >= doze->ticks || doze->passed == DOZE_PASSED_MAX)
		return false;
	doze->last_us = (u32)now_us;
	doze->last_rtt_us = (u32)rtt_us;
	doze->last_clock = (u16)receiver_clock;
	doze->passed++;
	return true;
}

static __always_inline bool doze_passes_over(struct doze *doze, const struct ack *ack)
{
	return received_bytes(ack) == (u32)ack->bytes_acked &&
	       doze_passes(doze, ack->now_us, (u32)ack->bytes_acked, ack->rtt_us, ack->receiver_clock);
}

/* An ACK has been looked at, and is the newest. */
static __always_inline void doze_looks(struct doze *doze, const struct ack *ack)
{
	doze->pause_us = 0;
	doze->last_us = (u32)ack->now_us;
	if (ack->rtt_us >= 0)
		doze->last_rtt_us = (u32)ack->rtt_us;
	doze->last_clock = (u16)ack->receiver_clock;
	doze->passed = 0;
}

#endif
