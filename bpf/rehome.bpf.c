/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Moves open sockets from one congestion control to another: an iterator over the TCP sockets of the reader's network
 * namespace, which reads one byte for each that used it: 1 moved, 0 refused. A control that is detached stays in use by
 * the sockets that have it; this is how they leave it. Of a control whose code was replaced both codes have the name:
 * `from` and `to` are the same then, and sockets that run the newer already are left alone.
 */
#include "kernel/types.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set by the loader, each in a section of its own. */
const volatile char from[TCP_CA_NAME_MAX] SEC(".rodata.from") = "from";
const volatile char to[TCP_CA_NAME_MAX] SEC(".rodata.to") = "to";

struct seq_file;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct tcp_congestion_ops___named {
	char name[TCP_CA_NAME_MAX];
};

struct inet_connection_sock___ops {
	const struct tcp_congestion_ops___named *icsk_ca_ops;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};
#pragma clang attribute pop

static __always_inline bool uses(const struct inet_connection_sock___ops *icsk)
{
	const struct tcp_congestion_ops___named *ops = icsk->icsk_ca_ops;

	for (u32 i = 0; i < TCP_CA_NAME_MAX; i++) {
		char have = ops->name[i];

		if (have != from[i])
			return false;
		if (!have)
			return true;
	}
	return true;
}

SEC("iter/tcp")
int rehome(struct bpf_iter__tcp *context)
{
	struct sock_common *common = context->sk_common;
	char name[TCP_CA_NAME_MAX];
	const struct inet_connection_sock___ops *icsk;
	const void *before;
	struct tcp_sock *tp;
	u8 moved;

	if (!common)
		return 0;
	/* None in TIME_WAIT and for a request: no socket that could change. */
	tp = bpf_skc_to_tcp_sock(common);
	icsk = (const struct inet_connection_sock___ops *)tp;
	if (!tp || !uses(icsk))
		return 0;
	for (u32 i = 0; i < TCP_CA_NAME_MAX; i++)
		name[i] = to[i];
	before = icsk->icsk_ca_ops;
	moved = bpf_setsockopt(tp, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name)) ? 0 : 1;
	if (moved && icsk->icsk_ca_ops == before)
		return 0;
	bpf_seq_write(context->meta->seq, &moved, sizeof(moved));
	return 0;
}
