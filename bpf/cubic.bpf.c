/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The yardstick of `onramp-lab bench`: the kernel's own CUBIC, HyStart included, as a control whose operations the kernel
 * counts. One operation is empty: it takes what calls and statistics take.
 */
#include "kernel/base.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Segments at which slow start ends; 0: nothing but CUBIC ends it. Set by the loader. */
const volatile u32 threshold SEC(".rodata.threshold") = 0;

SEC("struct_ops") void BPF_PROG(cubic_init, struct sock *sk)
{
	cubictcp_init(sk);
	if (threshold)
		set_ssthresh(sk, threshold);
}

SEC("struct_ops") u32 BPF_PROG(cubic_ssthresh, struct sock *sk)
{
	return cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops") void BPF_PROG(cubic_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	cubictcp_cong_avoid(sk, ack, acked);
}

SEC("struct_ops") void BPF_PROG(cubic_in_ack_event, struct sock *sk, u32 flags)
{
}

SEC("struct_ops") void BPF_PROG(cubic_set_state, struct sock *sk, u8 new_state)
{
	cubictcp_state(sk, new_state);
}

SEC("struct_ops") void BPF_PROG(cubic_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	base_cwnd_event(sk, event);
}

SEC("struct_ops") void BPF_PROG(cubic_cwnd_event_tx_start, struct sock *sk)
{
	base_tx_start(sk);
}

SEC("struct_ops") void BPF_PROG(cubic_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	cubictcp_acked(sk, sample);
}

SEC("struct_ops") u32 BPF_PROG(cubic_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops cubic = {
	.init = (void *)cubic_init,
	.ssthresh = (void *)cubic_ssthresh,
	.cong_avoid = (void *)cubic_cong_avoid,
	.in_ack_event = (void *)cubic_in_ack_event,
	.set_state = (void *)cubic_set_state,
	.cwnd_event = (void *)cubic_cwnd_event,
	.cwnd_event_tx_start = (void *)cubic_cwnd_event_tx_start,
	.pkts_acked = (void *)cubic_pkts_acked,
	.undo_cwnd = (void *)cubic_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "bench_cubic",
};
