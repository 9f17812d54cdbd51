/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A start by SUSS (start/suss.h): what it does to window and pacing. It has its turn in the first slow start, after each verdict
 * of the algorithm, whose exit ends it.
 */
#ifndef ONRAMP_SHELL_SUSS_H
#define ONRAMP_SHELL_SUSS_H

#include "../start/suss.h"
#include "ack.h"
#include "life.h"

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
	u64 rate = traits & TRAIT_PACES ? (u64)limits->pacing_rate * PACING_RATE_UNIT : 0;
	struct ack ack;

	if (!(flow->flags & FLOW_SLOW_START) || flow->flags & FLOW_EXITING || flow->slow_starts != 1) {
		suss_ends(suss, SUSS_EXIT);
		flow->flags &= ~FLOW_SUSS;
		return;
	}
	describe(sk, acked, rtt_us, &ack);
	suss_on_ack(suss, &ack, rate, view_cwnd_clamp(sk), &verdict);
	if (suss->end)
		flow->flags &= ~FLOW_SUSS;
	if (verdict.pacing_rate) {
		limits->pacing_rate = rate_in_units(verdict.pacing_rate);
		begin_pacing(sk, limits);
	} else if (!rate) {
		suss_ends_pacing(sk, limits);
	}
	/* Nor where the algorithm limits growth. */
	if (verdict.cwnd && !(limits->flags & LIMITS_GROWTH))
		set_cwnd(sk, bounded_window(sk, verdict.cwnd));
}

/* A reduction in slow start, for which there would be this threshold: the threshold. */
static __always_inline u32 suss_reduced(struct flow_header *flow, struct suss *suss, const struct ack *ack,
					u32 ssthresh)
{
	flow->flags &= ~FLOW_SUSS;
	suss_ends(suss, SUSS_LOSS);
	return suss_on_loss(ack, ssthresh);
}

#endif
