/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Gives the TCP sockets of a cgroup a congestion control: before the handshake where they connect, after it where they
 * accept. An application's own TCP_CONGESTION comes later and wins.
 */
#include "kernel/types.bpf.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* include/uapi/linux/bpf.h: the part of struct bpf_sock_ops that is read. */
struct bpf_sock_ops {
	__u32 op;
};

enum {
	BPF_SOCK_OPS_TCP_CONNECT_CB = 3,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
};

/* Set by the loader. */
const volatile char congestion_control[TCP_CA_NAME_MAX] = "cubic";

SEC("sockops")
int select_control(struct bpf_sock_ops *context)
{
	char name[TCP_CA_NAME_MAX];

	if (context->op != BPF_SOCK_OPS_TCP_CONNECT_CB && context->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	for (u32 i = 0; i < TCP_CA_NAME_MAX; i++)
		name[i] = congestion_control[i];
	bpf_setsockopt(context, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name));
	return 1;
}
