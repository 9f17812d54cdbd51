/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A start from memory in the kernel: the calls of shell/start.h, for sockets that have a path remembered. Each is a function
 * of its own, so that pkts_acked needs no room for it. Included by congestion_ops.bpf.h.
 */
#ifndef ONRAMP_RESUME_BPF_H
#define ONRAMP_RESUME_BPF_H

#include "../shell/start.h"
#include "base.bpf.h"
#include "starts.bpf.h"
#include "storage.bpf.h"

/* A connection begins. */
static __noinline void resume_begins(struct sock *sk)
{
	struct start *start = bpf_sk_storage_get(&starts, sk, 0, 0);

	if (!start || observing || expired() || (guarding && guard_arm(sk) == ARM_CONTROL))
		return;
	if (BASE_CONTROLS)
		start_ends(start, START_REFUSED);
	else
		start_begins(sk, start, find_limits(sk));
}

/* After a verdict. */
static __noinline void resume_acked(struct sock *sk, struct flow *flow, const struct ack_sample *sample)
{
	struct start *start = bpf_sk_storage_get(&starts, sk, 0, 0);

	if (start)
		start_acked(sk, &flow->header, limits_of(sk, flow), start, sample->pkts_acked, sample->rtt_us);
}

/* The threshold of a reduction. */
static __noinline u32 resume_reduced(struct sock *sk, struct flow *flow, const struct ack *ack, u32 ssthresh)
{
	struct start *start = bpf_sk_storage_get(&starts, sk, 0, 0);

	return start ? start_reduced(sk, &flow->header, start, ack, ssthresh) : ssthresh;
}

#endif
