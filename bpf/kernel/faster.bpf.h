/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A start that is faster than doubling, in the kernel: the calls of shell/fast.h or shell/suss.h, each a function of its own, so
 * that the operations need no room for it. Included by congestion_ops.bpf.h.
 */
#ifndef ONRAMP_FASTER_BPF_H
#define ONRAMP_FASTER_BPF_H

#include "../shell/fast.h"
#include "../shell/suss.h"
#include "learn.bpf.h"
#include "storage.bpf.h"

/* By whichever policy the attachment has. */
union faster {
	struct fast fast;
	struct suss suss;
};

/* How far each flow has come with it. Attachments without such a policy have neither this map nor anything of it in their code. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, union faster);
} fasters SEC(".maps");

/* Whether there can be such starts. Constants of each attachment. */
#define CAN_BE(policies) (!BASE_CONTROLS && start_policies & (policies) && !observing)
#define CAN_BE_FAST CAN_BE(1 << POLICY_FAST)
#define CAN_BE_FASTER CAN_BE(1 << POLICY_FAST | 1 << POLICY_SUSS)

/* A flow has got its state, and does not start from memory. */
static __noinline void start_faster(struct sock *sk, struct flow *flow)
{
	faster_begins(sk, &flow->header);
	if (flow->header.flags & FLOW_FASTER && !bpf_sk_storage_get(&fasters, sk, 0, BPF_SK_STORAGE_GET_F_CREATE))
		flow->header.flags &= ~FLOW_FASTER;
}

/* What it knew is of no use any more. */
static __always_inline void forget_if_over(struct sock *sk, const struct flow *flow)
{
	if (!(flow->header.flags & FLOW_FASTER))
		bpf_sk_storage_delete(&fasters, sk);
}

/* After a verdict. */
static __noinline void faster_verdict(struct sock *sk, struct flow *flow, const struct ack_sample *sample)
{
	union faster *faster = bpf_sk_storage_get(&fasters, sk, 0, 0);
	struct limits *limits = limits_of(sk, flow);

	if (!faster)
		return;
	if (CAN_BE_FAST)
		fast_acked(sk, &flow->header, limits, &faster->fast, ALL_TRAITS, sample->pkts_acked, sample->rtt_us);
	else
		suss_acked(sk, &flow->header, limits, &faster->suss, ALL_TRAITS, sample->pkts_acked, sample->rtt_us);
	forget_if_over(sk, flow);
}

/* The threshold of a reduction. */
static __noinline u32 faster_loses(struct sock *sk, struct flow *flow, const struct ack *ack, u32 ssthresh)
{
	union faster *faster = bpf_sk_storage_get(&fasters, sk, 0, 0);

	if (!faster)
		return ssthresh;
	if (CAN_BE_FAST)
		fast_reduced(sk, &flow->header, &faster->fast, ack, ssthresh);
	else
		ssthresh = suss_reduced(&flow->header, &faster->suss, ack, ssthresh);
	forget_if_over(sk, flow);
	return ssthresh;
}

/* The congestion state changes. */
static __noinline void fast_state(struct sock *sk, struct flow *flow, u32 new_state)
{
	union faster *faster = bpf_sk_storage_get(&fasters, sk, 0, 0);

	if (!faster)
		return;
	fast_lands_in(sk, &flow->header, &faster->fast, new_state);
	forget_if_over(sk, flow);
}

#if !BASE_CONTROLS
/* An ACK in recovery. */
static __noinline void fast_recovery(struct sock *sk)
{
	struct flow *flow = flow_in_time(sk);
	union faster *faster;

	if (!flow || !(flow->header.flags & FLOW_FASTER))
		return;
	faster = bpf_sk_storage_get(&fasters, sk, 0, 0);
	if (!faster)
		return;
	fast_recovers(sk, &flow->header, &faster->fast);
	forget_if_over(sk, flow);
}
#endif

#endif
