/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* SUSS (start/suss.h), in the shell's hands: what it does to window and pacing. */
#ifndef ONRAMP_SHELL_SUSS_H
#define ONRAMP_SHELL_SUSS_H

#include "../start/suss.h"
#include "faster.h"

/* What is acknowledged from here on leaves as it is, and not at the rate of red packets. */
static __always_inline void suss_ends_pacing(struct sock *sk, struct limits *limits)
{
	if (!(limits->flags & LIMITS_PACED))
		return;
	/* The window is as full as it is to be. */
	limits->filled_us = (u32)view_now_us(sk);
	end_pacing_once_sent(sk, limits);
}

/* After the verdict on an ACK in slow start. */
static __always_inline void suss_acked(struct sock *sk, struct flow_header *flow, struct limits *limits,
				       struct suss *suss, u32 traits, u32 acked, s32 rtt_us)
{
	struct start_verdict verdict = { 0 };
	u64 rate = algorithm_rate(limits, traits);
	struct ack ack;

	if (!faster_goes_on(flow)) {
		suss_ends(suss, SUSS_EXIT);
		flow->flags &= ~FLOW_FASTER;
		return;
	}
	describe(sk, acked, rtt_us, &ack);
	suss_on_ack(suss, &ack, rate, view_cwnd_clamp(sk), &verdict);
	if (suss->end)
		flow->flags &= ~FLOW_FASTER;
	if (!verdict.pacing_rate && !rate)
		suss_ends_pacing(sk, limits);
	faster_applies(sk, limits, &verdict);
}

/* A reduction, for which there would be this threshold: the threshold. */
static __always_inline u32 suss_reduced(struct flow_header *flow, struct suss *suss, const struct ack *ack,
					u32 ssthresh)
{
	bool goes_on = faster_goes_on(flow);

	flow->flags &= ~FLOW_FASTER;
	suss_ends(suss, goes_on ? SUSS_LOSS : SUSS_EXIT);
	return goes_on ? suss_on_loss(ack, ssthresh) : ssthresh;
}

#endif
