/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A start by SUSS, in the kernel: the calls of shell/suss.h, each a function of its own, so that the operations need no room for
 * it. Included by congestion_ops.bpf.h.
 */
#ifndef ONRAMP_SUSS_BPF_H
#define ONRAMP_SUSS_BPF_H

#include "../shell/suss.h"
#include "learn.bpf.h"
#include "storage.bpf.h"

/* How far each flow has come with it. Attachments without the policy have neither this map nor anything of it in their code. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct suss);
} susses SEC(".maps");

/* Whether there can be such starts. A constant of each attachment. */
#define CAN_BE_SUSS (!BASE_CONTROLS && start_policies >> POLICY_SUSS & 1 && !observing)

/* A flow has got its state, and does not start from memory. */
static __noinline void suss_begins(struct sock *sk, struct flow *flow)
{
	if (bpf_sk_storage_get(&susses, sk, 0, BPF_SK_STORAGE_GET_F_CREATE))
		flow->header.flags |= FLOW_SUSS;
}

/* After a verdict. */
static __noinline void suss_verdict(struct sock *sk, struct flow *flow, const struct ack_sample *sample)
{
	struct suss *suss = bpf_sk_storage_get(&susses, sk, 0, 0);

	if (suss)
		suss_acked(sk, &flow->header, limits_of(sk, flow), suss, ALL_TRAITS, sample->pkts_acked,
			   sample->rtt_us);
}

/* The threshold of a reduction. */
static __noinline u32 suss_loses(struct sock *sk, struct flow *flow, const struct ack *ack, u32 ssthresh)
{
	struct suss *suss = bpf_sk_storage_get(&susses, sk, 0, 0);

	return suss ? suss_reduced(&flow->header, suss, ack, ssthresh) : ssthresh;
}

#endif
