/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What becomes of a start whose base sets the window itself, with every ACK, as BBR does in STARTUP (kernel/bbr.bpf.h has the
 * course of it): until the exit the window is the algorithm's; then rounds follow that measure the rate, the first of which at
 * the window of the exit. Each that raises the rate by a sixteenth is followed by another with an eighth more, half of what BBR
 * probes with, and after three with as much as BBR. The first that does not finds the pipe full; so do losses of more than 2 %
 * of the window and more than six segments (BBRLossThresh and BBRStartupFullLossCnt, draft-ietf-ccwg-bbr).
 */
#ifndef ONRAMP_SHELL_STARTUP_H
#define ONRAMP_SHELL_STARTUP_H

#include "entry.h"

/* A round has raised the rate if it did so by this part, after which the window grows by the second, or the third. */
#define STARTUP_RAISED_PART 16
#define STARTUP_GROWTH_PART 8
#define STARTUP_GROWTH_MORE_PART 4
/* So many rounds that have raised the rate stand for more. */
#define STARTUP_RAISED_MAX 3
/* A loss ends the start if it is more than this part of the window and this many segments. */
#define STARTUP_LOSS_PART 50
#define STARTUP_LOSS_SEGMENTS 6

/* The base is to find its pipe full, with the rate that it has measured. */
static __always_inline void base_full(struct sock *sk);

/* An ACK, after the base's turn. */
struct startup_step {
	u32 before;	/* the window before that, segments */
	u32 window;	/* of the next round, segments; 0: the last has not raised the rate */
	s32 lost;	/* segments that the current recovery has retransmitted */
	u32 left;	/* 1: the exit has been */
	u32 recovering; /* 1: a loss was being recovered at the ACK before, or is at this one */
};

/* Of a round: whether it has raised the rate. */
static __always_inline bool startup_raised(u32 before, u32 rate)
{
	return rate > before + (u64)before / STARTUP_RAISED_PART;
}

/* The window of the round after so many that have, segments. */
static __always_inline u32 startup_grown(u32 window, u32 raised, u32 most)
{
	window += window / (raised >= STARTUP_RAISED_MAX ? STARTUP_GROWTH_MORE_PART : STARTUP_GROWTH_PART);
	return (u32)min_u64(window, most);
}

/* Whether the losses of a recovery say that the pipe is full. */
static __always_inline bool startup_overflows(const struct sock *sk, s32 lost)
{
	return lost > STARTUP_LOSS_SEGMENTS && (u64)lost * STARTUP_LOSS_PART > view_prior_cwnd(sk);
}

/*
 * What an ACK comes to, unless the base has ended its start: the window, and the rate while it is measured. Whether the window
 * may grow for the algorithm. `conclude` follows.
 */
static __always_inline bool startup_goes_on(const struct shell *shell, const struct startup_step *step)
{
	struct sock *sk = shell->sk;
	u32 window = step->window;

	if (step->recovering && startup_overflows(sk, step->lost)) {
		if (shell->flow->flags & FLOW_SLOW_START)
			left_by(shell, EXIT_LOSS);
		window = 0;
	}
	if (step->recovering) {
		/* The base's window, but no growth. */
		set_cwnd(sk, (u32)min_u64(view_cwnd(sk), view_prior_cwnd(sk)));
	} else if (window) {
		if (window > step->before)
			expect_filled(sk, shell->limits);
		set_cwnd(sk, window);
	}
	if (!window) {
		base_full(sk);
		return false;
	}
	if (!step->left)
		return !step->recovering && !in_recovery(sk);
	if (view_srtt_eighths_us(sk))
		set_pacing_rate(sk, min_u64(window_rate(sk) * 5 / 4, view_max_pacing_rate(sk)));
	return false;
}

#endif
