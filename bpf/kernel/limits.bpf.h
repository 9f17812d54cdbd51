/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the last verdict says of each ACK that grows the window and of each burst that is sent. It is asked for far more
 * often than a verdict is given, so where the base leaves room it is not in the flow's storage, which must be looked up,
 * but in the socket itself: in the area that the kernel gives to a congestion control, and clears before it calls init.
 */
#ifndef ONRAMP_LIMITS_BPF_H
#define ONRAMP_LIMITS_BPF_H

#include "types.bpf.h"

/* Bits of struct limits.flags. */
enum limits_flag {
	LIMITS_GROWTH = 1 << 0, /* the last verdict was GROWTH_LIMITED */
	LIMITS_PACED = 1 << 1,	/* the socket paces because the algorithm asked for it */
};

struct limits {
	u32 pacing_rate; /* PACING_RATE_UNIT bytes per second, rounded up; 0: none */
	u32 filled_us;	 /* monotonic time modulo 2^32 at which the window is filled after a spaced slow start */
	u16 growth;	 /* segments, with LIMITS_GROWTH */
	u16 flags;	 /* enum limits_flag */
	u32 unused;
};

/* 32 bits of it hold 274 GB/s. */
#define PACING_RATE_UNIT 64

/* The end of the area, of which CUBIC's state takes the first 60 of 104 bytes. BBR's takes all. */
static __always_inline struct limits *limits_in_socket(struct sock *sk)
{
	return (struct limits *)&((struct inet_connection_sock *)sk)->icsk_ca_priv[11];
}

#endif
