/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Loss, marks and timeouts. The kernel asks for the threshold while the window is still whole, and only the state that it
 * sets next says which of them it was.
 */
#ifndef ONRAMP_SHELL_LOSS_H
#define ONRAMP_SHELL_LOSS_H

#include "life.h"

/* A reduction ends slow start, and the record where this is the first. */
static __always_inline void reduce(struct flow_header *flow, const struct ack *ack, u32 reason)
{
	flow->flags &= ~FLOW_RECORDED;
	flow->flags |= FLOW_REDUCED | (flow->exit.reason == EXIT_NONE ? FLOW_RECORDED : 0);
	record_exit(flow, ack, reason);
}

/* A reduction ends slow start; finish_exit follows, with the threshold that the algorithm has answered. */
static __always_inline void record_loss(struct flow_header *flow, const struct ack *ack)
{
	reduce(flow, ack, EXIT_LOSS);
	if (flow->flags & FLOW_RECORDED)
		flow->flags |= FLOW_UNNAMED;
}

/* The same where the window has been reduced already: the kernel has kept what it was. */
static __always_inline void leave_reduced(struct sock *sk, struct flow_header *flow, struct limits *limits,
					  struct ack *ack, u32 reason)
{
	ack->cwnd = view_prior_cwnd(sk);
	reduce(flow, ack, reason);
	finish_exit(sk, flow, limits, view_cwnd(sk));
}

/* A reduction outside slow start: an undo is about this event now, not about the one that ended slow start. */
static __always_inline void reduced_again(struct flow_header *flow)
{
	flow->flags &= ~FLOW_REDUCED;
}

/*
 * The state that follows a reduction: its name. A tail loss that a probe has repaired (RFC 8985, section 7) takes the state
 * of a mark, and leaves it with the same ACK; no mark does.
 */
static __always_inline void name_reduction(const struct sock *sk, struct flow_header *flow, u32 new_state)
{
	if (!(flow->flags & FLOW_UNNAMED))
		return;
	if (new_state == STATE_CWR) {
		flow->exit.reason = mark_reason(sk);
		return;
	}
	flow->flags &= ~FLOW_UNNAMED;
	if (view_state(sk) != STATE_CWR) {
		if (new_state == STATE_LOSS)
			flow->exit.reason = EXIT_TIMEOUT;
	} else if (flow->start_us + flow->exit.at_us == view_now_us(sk)) {
		flow->exit.reason = EXIT_LOSS;
	}
}

/* A timeout or an idle restart: the next ACK in slow start begins it anew. */
static __always_inline void slow_start_ends(struct flow_header *flow)
{
	flow->flags &= ~FLOW_SLOW_START;
}

/*
 * The loss was none; the base would restore `window`. Whether slow start goes on, where the loss has ended it: with the
 * algorithm as it is, and without the exit record if that was of this loss. Where the loss interrupted a drain, the exit
 * stands, and the window is restored no further than the drain was heading.
 */
static __always_inline bool undo(const struct sock *sk, struct flow_header *flow, u32 *window)
{
	if (!(flow->flags & FLOW_REDUCED))
		return false;
	flow->flags &= ~FLOW_REDUCED;
	if (flow->undo_limit && flow->exit.reason == EXIT_ALGORITHM) {
		flow->flags |= FLOW_EXITING;
		*window = (u32)max_u64(view_cwnd(sk), min_u64(*window, flow->undo_limit));
		return false;
	}
	flow->flags |= FLOW_SLOW_START;
	if (flow->flags & FLOW_RECORDED) {
		flow->exit.reason = EXIT_NONE;
		if (flow->exit.undone < 0xff)
			flow->exit.undone++;
	}
	return true;
}

#endif
