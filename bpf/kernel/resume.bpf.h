/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A start from memory in the kernel: the calls of shell/start.h, for sockets that have a path remembered, by a rule or by what
 * connections before have learned. Each is a function of its own, so that pkts_acked needs no room for it. Included by
 * congestion_ops.bpf.h.
 */
#ifndef ONRAMP_RESUME_BPF_H
#define ONRAMP_RESUME_BPF_H

#include "../shell/start.h"
#include "base.bpf.h"
#include "learn.bpf.h"
#include "starts.bpf.h"
#include "storage.bpf.h"

/* Whether data can be paced: what neither paces nor has a policy is without min_tso_segs (loader/src/object/open.rs). */
#define CAN_PACE (HAS(TRAIT_PACES) || start_policies)

/* The start is over: another connection may have its turn. */
static __always_inline void resume_ends(struct sock *sk, struct start *start)
{
	if (start_policies & START_BOTH && start->claim_ns && start->phase == START_OVER)
		give_back_claim(sk, start);
}

/* Has a connection start from what has been learned of its path. Null: it starts as without memory. */
static __noinline struct start *resume_recalls(struct sock *sk)
{
	struct start recalled = {};
	struct start *start;

	if (!claim_path(sk, &recalled))
		return 0;
	start = bpf_sk_storage_get(&starts, sk, &recalled, BPF_SK_STORAGE_GET_F_CREATE);
	if (!start)
		give_back_claim(sk, &recalled);
	return start;
}

/* A connection begins. What an operator knows of its path comes before what has been learned. */
static __noinline void resume_begins(struct sock *sk)
{
	struct start *start = bpf_sk_storage_get(&starts, sk, 0, 0);

	if ((!start && !(start_policies >> POLICY_WINDOW & 1)) || observing || expired() ||
	    (guarding && guard_arm(sk) == ARM_CONTROL))
		return;
	if (!start)
		start = resume_recalls(sk);
	if (!start)
		return;
	if (BASE_CONTROLS || !CAN_PACE)
		start_ends(start, START_REFUSED);
	else
		start_begins(sk, start, find_limits(sk));
	resume_ends(sk, start);
}

/* A flow has got its state, for it has more to send than its first window. */
static __noinline void resume_joins(struct sock *sk, struct flow *flow)
{
	struct start *start = bpf_sk_storage_get(&starts, sk, 0, 0);

	if (start) {
		if (start->claim_ns)
			extend_claim(sk, start);
		return;
	}
	/* With a first window of its own it has had its turn when it began. */
	if (start_policies >> POLICY_WINDOW & 1)
		return;
	start = resume_recalls(sk);
	if (!start)
		return;
	if (start_begins(sk, start, limits_of(sk, flow)))
		start_goes_on(&flow->header, start);
	resume_ends(sk, start);
}

/* After a verdict. */
static __noinline void resume_acked(struct sock *sk, struct flow *flow, const struct ack_sample *sample)
{
	struct start *start = bpf_sk_storage_get(&starts, sk, 0, 0);

	if (!start)
		return;
	start_acked(sk, &flow->header, limits_of(sk, flow), start, ALL_TRAITS, sample->pkts_acked, sample->rtt_us);
	resume_ends(sk, start);
}

/* The threshold of a reduction. */
static __noinline u32 resume_reduced(struct sock *sk, struct flow *flow, const struct ack *ack, u32 ssthresh)
{
	struct start *start = bpf_sk_storage_get(&starts, sk, 0, 0);

	if (!start)
		return ssthresh;
	ssthresh = start_reduced(sk, &flow->header, start, ack, ssthresh);
	resume_ends(sk, start);
	return ssthresh;
}

/* The socket ends, or goes to another control: what has been learned of its path is not its own any more. */
static __noinline void resume_released(struct sock *sk)
{
	struct start *start = bpf_sk_storage_get(&starts, sk, 0, 0);

	if (start && start->claim_ns)
		give_back_claim(sk, start);
	if (start && start->late_us)
		bpf_sk_storage_delete(&starts, sk);
}

#endif
