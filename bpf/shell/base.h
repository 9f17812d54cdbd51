/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the shell needs of the base, which does congestion avoidance, loss reaction and undo. The base's turn itself is the
 * caller's: kfuncs in kernel/base.bpf.h and kernel/bbr.bpf.h, models of the simulator on the host. So each entry of the
 * shell is in two parts, one before the base or the algorithm is called, and one after.
 */
#ifndef ONRAMP_SHELL_BASE_H
#define ONRAMP_SHELL_BASE_H

#include "view.h"

/*
 * Whether the base sets the window itself, with every ACK, as BBR does. Then a reduction ends slow start by the congestion
 * state alone, and base_start_again has it begin anew.
 */
static __always_inline bool base_controls(const struct sock *sk);
/* Whether the base is in slow start, which the algorithm may end. */
static __always_inline bool base_in_slow_start(struct sock *sk);
static __always_inline void base_start_again(struct sock *sk);
/* Slow start has been left: a base that controls the window itself learns of it. */
static __always_inline void base_left(struct sock *sk);
/* A connection is taken over in mid-life, which must not begin slow start for want of a threshold. */
static __always_inline void base_past_start(struct sock *sk);

/* Options in force, a bit for each of enum after_exit. */
static __always_inline u32 base_options(const struct sock *sk);
/* With AFTER_PLATEAU: the base levels off at this window, in segments. */
static __always_inline void base_set_plateau(struct sock *sk, u32 window);

/* Between a loss or mark and the end of its recovery the window is not the algorithm's. */
static __always_inline bool in_recovery(const struct sock *sk)
{
	u32 state = view_state(sk);

	return state == STATE_RECOVERY || state == STATE_CWR;
}

static __always_inline bool is_below_threshold(const struct sock *sk)
{
	return view_cwnd(sk) < view_ssthresh(sk);
}

/*
 * Whether the window grows by acknowledgments, so that slow start can be in progress. Not in recovery; and after a timeout
 * slow start begins anew once that has not proved spurious: else it goes on, as the algorithm knows it.
 */
static __always_inline bool may_start(const struct sock *sk)
{
	u32 state = view_state(sk);

	return state < STATE_CWR || (state == STATE_LOSS && !view_in_doubt(sk));
}

/* Slow start of a base that ends it at the threshold. In recovery the window may lie below it all the same. */
static __always_inline bool starts_below_threshold(const struct sock *sk)
{
	return is_below_threshold(sk) && may_start(sk);
}

/* base_past_start of such a base. A window that has hardly grown, as after small requests, may still have to start. */
static __always_inline void end_start_by_threshold(struct sock *sk)
{
	if (view_ssthresh(sk) >= NO_THRESHOLD && view_cwnd(sk) > 2 * INITIAL_WINDOW)
		set_ssthresh(sk, view_cwnd(sk));
}

#endif
