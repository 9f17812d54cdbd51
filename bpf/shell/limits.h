/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the last verdict says of each ACK that grows the window and of each burst that is sent. A flow that sleeps (sleep.h) needs
 * some of it for what its algorithm keeps.
 */
#ifndef ONRAMP_SHELL_LIMITS_H
#define ONRAMP_SHELL_LIMITS_H

#include "../algorithm/base.h"

/* Bits of struct limits.flags. */
enum limits_flag {
	LIMITS_GROWTH = 1 << 0,	 /* the last verdict was GROWTH_LIMITED */
	LIMITS_PACED = 1 << 1,	 /* the socket paces because the algorithm asked for it */
	LIMITS_PROBING = 1 << 2, /* the threshold is above the window because of AFTER_PROBE */
	LIMITS_FIRST = 1 << 3,	 /* the rate is that of the first window, of a start from memory */
};

struct limits {
	u32 pacing_rate; /* PACING_RATE_UNIT bytes per second, rounded up; 0: none */
	u32 filled_us; /* monotonic time modulo 2^32 at which the window is filled after a paced slow start; asleep: doze.last_us */
	u16 growth;    /* segments, with LIMITS_GROWTH; asleep: doze.passed */
	u8 flags;      /* enum limits_flag */
	u8 rounds;     /* since the last probe (probe.h) or reduction */
	u32 round_end; /* with AFTER_PROBE: bytes acknowledged when the round is over, modulo 2^32 */
	u32 first_end; /* with LIMITS_FIRST: bytes sent when the first window is, modulo 2^32; asleep: doze.last_rtt_us */
	u32 queue_us; /* with AFTER_FLOOR: the largest queue that a reduction has met */
};

/* 32 bits of it hold 274 GB/s. */
#define PACING_RATE_UNIT 64

static __always_inline u32 rate_in_units(u64 rate)
{
	return (u32)min_u64((rate + PACING_RATE_UNIT - 1) / PACING_RATE_UNIT, ~0U);
}

#endif
