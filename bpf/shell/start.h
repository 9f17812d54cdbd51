/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A start from memory (start/resume.h): what it does to window, threshold and pacing. It begins before the first data is
 * sent, and has its turn in slow start after each verdict of the algorithm, whose exit ends it.
 */
#ifndef ONRAMP_SHELL_START_H
#define ONRAMP_SHELL_START_H

#include "../start/path.h"
#include "ack.h"
#include "life.h"
#include "verdict.h"

/*
 * A connection begins, over a remembered path: before it has sent anything, or once it has more to send than its first window.
 * Whether it starts from memory: not where its window is less than an initial one because the handshake was repeated, where a
 * threshold is there already, or the handshake took another RTT.
 */
static __always_inline bool start_begins(struct sock *sk, struct start *start, struct limits *limits)
{
	u32 mss = view_mss(sk), window = view_cwnd(sk);

	if (start->phase != START_RECONNAISSANCE || start->mark)
		return false;
	if (!mss || !start->rate || !start->rtt_us || window < INITIAL_WINDOW || view_ssthresh(sk) < NO_THRESHOLD ||
	    !start_knows_rtt(start, view_min_rtt_us(sk))) {
		start_ends(start, START_REFUSED);
		return false;
	}
	if (!start_gains(start, mss, window)) {
		start_ends(start, START_NO_GAIN);
		return false;
	}
	if (view_bytes_sent(sk)) {
		start->mark = (u32)view_bytes_sent(sk);
		return true;
	}
	window = bounded_window(sk, start_first_window(start, mss, window));
	start->mark = window * mss;
	if (window > view_cwnd(sk)) {
		set_cwnd(sk, window);
		if (limits) {
			limits->first_end = start->mark;
			limits->flags |= LIMITS_FIRST;
			pace_at(sk, limits, start_first_rate(start));
		}
	}
	return true;
}

/*
 * The rate at which a window came through, bytes per second, by the smoothed RTT: all of it once so much has been acknowledged
 * since slow start was left, for beyond that a window grows that is full alone. Else half, for one that doubles has been used to
 * half at least; nor more than half of all that was ever acknowledged, for one that was given.
 */
static __always_inline u64 window_came_through(const struct sock *sk, const struct flow_header *flow, u64 mss)
{
	u64 window = min_u64(view_cwnd(sk), PATH_DELIVERED_MAX) * mss, acked = view_bytes_acked(sk);
	bool whole = flow->exit.reason && !is_below_threshold(sk) && acked - flow->exit.bytes_acked >= window;
	u32 srtt_us = view_srtt_eighths_us(sk) >> 3;
	u64 bytes = whole ? window : min_u64(window, acked) / 2;

	return srtt_us ? min_u64(bytes, 1ULL << 43) * 1000000 / srtt_us : 0;
}

/*
 * What a connection has seen of its path, by the kernel's newest sample of its delivery rate. While it doubles, that is the rate
 * of half its window. `ends`: the connection does, whose newest sample is that of its last segments, be it of a FIN alone, and
 * whose window may have been reduced: what came through it is the least that the path carries.
 */
static __always_inline void sample_path(const struct sock *sk, const struct flow_header *flow, bool ends,
					struct path_sample *sample)
{
	u64 interval_us = view_rate_interval_us(sk), mss = view_mss(sk);
	u32 reason = flow->exit.reason;

	*sample = (struct path_sample){ 0 };
	if (!interval_us || flow->flags & FLOW_ADOPTED ||
	    view_bytes_acked(sk) <= PATH_WINDOWS_MIN * initial_window_bytes(sk))
		return;
	sample->rate = min_u64(view_rate_delivered(sk), PATH_DELIVERED_MAX) * mss * 1000000 / interval_us;
	if (ends)
		sample->rate = max_u64(sample->rate, window_came_through(sk, flow, mss));
	sample->rtt_us = view_min_rtt_us(sk);
	sample->is_least = ends || (reason != EXIT_ALGORITHM && reason != EXIT_LOSS && reason != EXIT_ECN) ||
			   view_limited_by(sk) & ACK_RATE_APP_LIMITED ||
			   view_receive_window(sk) < (u64)view_cwnd(sk) * mss;
}

/* The flow gets its state: whether a start from memory has begun and is not over. */
static __always_inline void start_goes_on(struct flow_header *flow, const struct start *start)
{
	if (start->phase < START_OVER && start->mark)
		flow->flags |= FLOW_STARTS;
}

/* After the verdict on an ACK in slow start. */
static __always_inline void start_acked(struct sock *sk, struct flow_header *flow, struct limits *limits,
					struct start *start, u32 traits, u32 acked, s32 rtt_us)
{
	struct start_verdict verdict = { 0 };
	struct ack ack;
	bool paced = start->phase <= START_UNVALIDATED;

	if (!(flow->flags & FLOW_SLOW_START) || flow->flags & FLOW_EXITING) {
		start_ends(start, START_EXIT);
	} else {
		describe(sk, acked, rtt_us, &ack);
		start_on_ack(start, &ack, limits->flags & LIMITS_GROWTH ? growth_allowed(limits, acked) : acked,
			     !ack.bytes_outstanding && !view_bytes_unsent(sk), &verdict);
	}
	if (start->phase == START_OVER)
		flow->flags &= ~FLOW_STARTS;
	if (verdict.cwnd)
		set_cwnd(sk, bounded_window(sk, verdict.cwnd));
	if (verdict.pacing_rate) {
		limits->flags &= ~LIMITS_FIRST;
		pace_at(sk, limits, verdict.pacing_rate);
	} else if (paced && start->phase > START_UNVALIDATED && !(traits & TRAIT_PACES)) {
		/* The rate of an algorithm that paces has taken this one's place, or does with its next verdict. */
		end_pacing_once_sent(sk, limits);
	}
}

/*
 * A reduction: the threshold, which would be `ssthresh`. Where a jump is given up, CUBIC does not return to the window that it
 * went to.
 */
static __always_inline u32 start_reduced(struct sock *sk, struct flow_header *flow, struct start *start,
					 const struct ack *ack, u32 ssthresh)
{
	if (!(flow->flags & FLOW_SLOW_START))
		start_ends(start, START_EXIT);
	flow->flags &= ~FLOW_STARTS;
	ssthresh = start_on_loss(start, ack, ssthresh);
	if (start->end == START_RETREAT)
		base_set_plateau(sk, ssthresh);
	return ssthresh;
}

#endif
