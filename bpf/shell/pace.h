/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Pacing. The kernel computes the socket's pacing rate anew with every ACK, after the algorithm's turn and before anything
 * is sent, so a rate written then would be overwritten, and SO_MAX_PACING_RATE belongs to the application. But the kernel
 * calls min_tso_segs each time before it sends: there the rate is written, in place of the kernel's own and not above what
 * the application allows, and nothing has to be restored.
 *
 * Slow start may end with a window larger than what is in flight, because the difference was still being paced. The
 * algorithm's rate ends there; from then on one window leaves per RTT until no more than 1/32 of it is left to fill, so
 * that the difference does not leave as one burst. It is filled after one RTT; where ACKs free more than 1/32 at once,
 * only the time says so.
 */
#ifndef ONRAMP_SHELL_PACE_H
#define ONRAMP_SHELL_PACE_H

#include "limits.h"
#include "view.h"

/* Has TCP pace by itself where nothing does. */
static __always_inline void begin_pacing(struct sock *sk, struct limits *limits)
{
	if (!view_paced(sk) && start_pacing(sk))
		limits->flags |= LIMITS_PACED;
}

/* At this rate from here on, bytes per second. */
static __always_inline void pace_at(struct sock *sk, struct limits *limits, u64 rate)
{
	limits->pacing_rate = rate_in_units(rate);
	begin_pacing(sk, limits);
}

/* The rate at which the algorithm paces, bytes per second; 0: it does not. After its verdict. */
static __always_inline u64 algorithm_rate(const struct limits *limits, u32 traits)
{
	return traits & TRAIT_PACES ? (u64)limits->pacing_rate * PACING_RATE_UNIT : 0;
}

/* Undoes begin_pacing at once, unless the application has asked for pacing in the meantime. */
static __always_inline void end_pacing(struct sock *sk, struct limits *limits)
{
	limits->pacing_rate = 0;
	if (!(limits->flags & LIMITS_PACED))
		return;
	limits->flags &= ~LIMITS_PACED;
	if (view_max_pacing_rate(sk) == ~0UL)
		stop_pacing(sk);
}

/*
 * Nothing is paced from here on. Packets in a paced burst are stamped with the time at which they will have left; if the
 * socket stopped pacing before, those after them would be stamped earlier, and RTTs come out short by up to the burst. So
 * pacing ends once that time has come: `pace` tries again.
 */
static __always_inline void end_pacing_once_sent(struct sock *sk, struct limits *limits)
{
	limits->pacing_rate = 0;
	if (limits->flags & LIMITS_PACED && !view_stamped_ahead(sk))
		end_pacing(sk, limits);
}

/* One window per smoothed RTT, bytes per second; there is an RTT. */
static __always_inline u64 window_rate(const struct sock *sk)
{
	return 8000000ULL * view_cwnd(sk) * view_mss(sk) / view_srtt_eighths_us(sk);
}

/* The window is filled in an RTT at the latest. */
static __always_inline void expect_filled(const struct sock *sk, struct limits *limits)
{
	limits->filled_us = (u32)view_now_us(sk) + (view_srtt_eighths_us(sk) >> 3);
}

/* Whether what the window allows has been sent since, as far as is known. */
static __always_inline bool is_filled(const struct sock *sk, const struct limits *limits)
{
	return view_in_flight(sk) + view_cwnd(sk) / 32 >= view_cwnd(sk) || !view_srtt_eighths_us(sk) ||
	       (s32)((u32)view_now_us(sk) - limits->filled_us) >= 0;
}

/* Before data is sent, while something paces. */
static __always_inline void pace(struct sock *sk, struct limits *limits)
{
	u64 rate;

	if (limits->flags & LIMITS_FIRST && (s32)((u32)view_bytes_sent(sk) - limits->first_end) >= 0) {
		limits->flags &= ~LIMITS_FIRST;
		limits->pacing_rate = 0;
		expect_filled(sk, limits);
	}
	rate = (u64)limits->pacing_rate * PACING_RATE_UNIT;

	if (!rate) {
		if (!(limits->flags & LIMITS_PACED))
			return;
		if (is_filled(sk, limits)) {
			end_pacing_once_sent(sk, limits);
			return;
		}
		rate = window_rate(sk);
	}
	set_pacing_rate(sk, min_u64(rate, view_max_pacing_rate(sk)));
}

#endif
