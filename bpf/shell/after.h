/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Options of the base (record.h: AFTER_EXIT_ROWS) for what comes after slow start. Off, they still cost an ACK
 * in slow start some ten instructions.
 *
 *   plateau   A CUBIC that has met no loss has no W_max (RFC 9438), and grows by a twentieth of its window per RTT for as
 *             long as it meets none. An exit by the algorithm is a measure of the path, so its window becomes W_max.
 *   floor     A loss that no full queue has caused says nothing about the size of the window. What the path delivers in a
 *             minimum RTT needs no queue, so 0.95 of that, and no more than the window, is the least that a loss
 *             leaves. It is the rule of Westwood+ (Grieco and Mascolo 2004; tcp_westwood.c). With a standing queue of more
 *             than a third of the BDP it is below what CUBIC leaves, and CUBIC decides. The rate is that of the kernel's
 *             newest sample, and none where the application has limited it. Where a window leaves as one burst, the sample
 *             covers a part of it alone, and the floor is lower.
 *
 * A mark, in contrast to a loss, comes from a queue, so there the base decides; so it does where a probe has repaired the only
 * loss (RFC 8985, section 7), of which the socket says no more.
 *
 * A small queue may be full without being a third of the BDP, and flows that share it must reduce. So the floor holds only
 * where the queue, which is the smoothed RTT above the minimum, is at most a third of the largest that a reduction of this
 * flow has met, or no more than noise. The first reduction has no other to compare with: where it meets a queue, the base
 * decides.
 */
#ifndef ONRAMP_SHELL_AFTER_H
#define ONRAMP_SHELL_AFTER_H

#include "base.h"
#include "limits.h"

/* Hundredths of what the path delivers in a minimum RTT that a reduction leaves. */
#define FLOOR_PCT 95
/* Of the largest queue that a reduction has met: up to there a queue is not full. */
#define FLOOR_QUEUE_PART 3
/* Of the minimum RTT, which is no queue. */
#define FLOOR_NOISE_PART 64
/* Keeps the product within 64 bits: nine minutes. */
#define FLOOR_RTT_MAX_US (1U << 29)

static __always_inline bool base_has(const struct sock *sk, enum after_exit option)
{
	return base_options(sk) >> option & 1;
}

/* The algorithm has ended slow start. */
static __always_inline void after_own_exit(struct sock *sk)
{
	if (base_has(sk, AFTER_PLATEAU))
		base_set_plateau(sk, view_cwnd(sk));
}

/* Segments that a reduction leaves at least; 0: not known. */
static __always_inline u32 floor_window(const struct sock *sk)
{
	u64 interval_us = view_rate_interval_us(sk);
	u64 segments;

	if (!interval_us || view_limited_by(sk) & ACK_RATE_APP_LIMITED)
		return 0;
	segments = view_rate_delivered(sk) * min_u64(view_min_rtt_us(sk), FLOOR_RTT_MAX_US) / interval_us;
	return (u32)min_u64(min_u64(segments, NO_THRESHOLD) * FLOOR_PCT / 100, view_cwnd(sk));
}

/* A reduction: whether the queue that it meets is far from full. */
static __always_inline bool queue_is_small(const struct sock *sk, struct limits *limits)
{
	u32 srtt_us = view_srtt_eighths_us(sk) >> 3, min_rtt_us = view_min_rtt_us(sk);
	u32 queue_us = srtt_us > min_rtt_us ? srtt_us - min_rtt_us : 0;

	if (queue_us <= max_u64(limits->queue_us / FLOOR_QUEUE_PART, min_rtt_us / FLOOR_NOISE_PART))
		return true;
	limits->queue_us = (u32)max_u64(limits->queue_us, queue_us);
	return false;
}

/* The threshold at a loss, mark or timeout, where the base would have this one. */
static __always_inline u32 after_loss(const struct sock *sk, struct limits *limits, u32 ssthresh)
{
	/* The queue that a mark meets is kept as well. */
	if (!base_has(sk, AFTER_FLOOR) || !queue_is_small(sk, limits) || !view_lost_out(sk))
		return ssthresh;
	return (u32)max_u64(ssthresh, floor_window(sk));
}

#endif
