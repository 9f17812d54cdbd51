/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A start that is faster than doubling, in the kernel: the calls of shell/fast.h, each a function of its own, so that the
 * operations need no room for it. Included by congestion_ops.bpf.h.
 */
#ifndef ONRAMP_FAST_BPF_H
#define ONRAMP_FAST_BPF_H

#include "../shell/fast.h"
#include "learn.bpf.h"
#include "storage.bpf.h"

/* How far each flow has come with it. Attachments without the policy have neither this map nor anything of it in their code. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fast);
} fasts SEC(".maps");

/* Whether there can be such starts. A constant of each attachment. */
#define CAN_BE_FAST (!BASE_CONTROLS && start_policies >> POLICY_FAST & 1 && !observing)

/* A flow has got its state, and does not start from memory. */
static __noinline void fast_begins(struct sock *sk, struct flow *flow)
{
	if (bpf_sk_storage_get(&fasts, sk, 0, BPF_SK_STORAGE_GET_F_CREATE))
		flow->header.flags |= FLOW_FAST;
}

/* After a verdict. */
static __noinline void fast_verdict(struct sock *sk, struct flow *flow, const struct ack_sample *sample)
{
	struct fast *fast = bpf_sk_storage_get(&fasts, sk, 0, 0);

	if (fast)
		fast_acked(sk, &flow->header, limits_of(sk, flow), fast, ALL_TRAITS, sample->pkts_acked,
			   sample->rtt_us);
}

/* The threshold of a reduction. */
static __noinline void fast_loses(struct sock *sk, struct flow *flow, const struct ack *ack, u32 ssthresh)
{
	struct fast *fast = bpf_sk_storage_get(&fasts, sk, 0, 0);

	if (fast)
		fast_reduced(sk, &flow->header, fast, ack, ssthresh);
}

/* The congestion state changes. */
static __noinline void fast_state(struct sock *sk, struct flow *flow, u32 new_state)
{
	struct fast *fast = bpf_sk_storage_get(&fasts, sk, 0, 0);

	if (fast)
		fast_lands_in(sk, &flow->header, fast, new_state);
}

#if !BASE_CONTROLS
/* An ACK in recovery. */
static __noinline void fast_recovery(struct sock *sk)
{
	struct flow *flow = flow_in_time(sk);
	struct fast *fast;

	if (!flow || !(flow->header.flags & FLOW_FAST))
		return;
	fast = bpf_sk_storage_get(&fasts, sk, 0, 0);
	if (fast)
		fast_recovers(sk, &flow->header, fast);
}
#endif

#endif
