/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Rapid Start (start/fast.h), in the shell's hands: what it does to window and threshold. It has its turn in the recovery of the
 * loss that ends slow start, too.
 */
#ifndef ONRAMP_SHELL_FAST_H
#define ONRAMP_SHELL_FAST_H

#include "../start/fast.h"
#include "faster.h"

/* Of a window that slow start would not have reached by doubling, CUBIC's plateau is what the path delivered. */
static __always_inline void fast_sets(struct sock *sk, struct fast *fast)
{
	u32 ssthresh = fast_lands(fast, view_delivered(sk), view_lost(sk));

	set_ssthresh(sk, ssthresh);
	base_set_plateau(sk, (u32)((u64)ssthresh * fast->window / max_u64(fast->ssthresh, 1)));
}

/* After the verdict on an ACK in slow start. */
static __always_inline void fast_acked(struct sock *sk, struct flow_header *flow, struct limits *limits,
				       struct fast *fast, u32 traits, u32 acked, s32 rtt_us)
{
	struct start_verdict verdict = { 0 };
	struct ack ack;

	if (fast->phase == FAST_LANDING && view_state(sk) == STATE_RECOVERY)
		return;
	if (!faster_goes_on(flow) || fast->phase != FAST_GROWING) {
		fast_ends(fast, fast->phase == FAST_GROWING ? FAST_EXIT : FAST_LOSS);
		flow->flags &= ~FLOW_FASTER;
		return;
	}
	describe(sk, acked, rtt_us, &ack);
	fast_on_ack(fast, &ack, algorithm_rate(limits, traits), view_cwnd_clamp(sk), &verdict);
	faster_applies(sk, limits, &verdict);
}

/* A reduction, for which the base would have this threshold. The state that follows says whether it is a loss. */
static __always_inline void fast_reduced(struct sock *sk, struct flow_header *flow, struct fast *fast,
					 const struct ack *ack, u32 ssthresh)
{
	fast->lost = view_lost(sk);
	if (fast->phase == FAST_GROWING && !faster_goes_on(flow))
		fast_ends(fast, FAST_EXIT);
	if (fast->phase == FAST_OVER || !fast_on_loss(fast, ack, ssthresh))
		flow->flags &= ~FLOW_FASTER;
}

/* The congestion state after that: in recovery it lands, else the base's threshold stays. */
static __always_inline void fast_lands_in(struct sock *sk, struct flow_header *flow, struct fast *fast, u32 new_state)
{
	if (fast->phase != FAST_LANDING)
		return;
	if (new_state == STATE_RECOVERY) {
		fast_sets(sk, fast);
		return;
	}
	/* A timeout in the recovery keeps the threshold. */
	if (new_state == STATE_LOSS)
		set_ssthresh(sk, (u32)min_u64(view_ssthresh(sk), fast->ssthresh));
	fast_ends(fast, new_state == STATE_OPEN || new_state == STATE_DISORDER ? FAST_LANDED : FAST_LOSS);
	flow->flags &= ~FLOW_FASTER;
}

/* An ACK in recovery. */
static __always_inline void fast_recovers(struct sock *sk, struct flow_header *flow, struct fast *fast)
{
	if (fast->phase == FAST_LANDING)
		fast_sets(sk, fast);
	if (fast->phase == FAST_OVER)
		flow->flags &= ~FLOW_FASTER;
}

#endif
