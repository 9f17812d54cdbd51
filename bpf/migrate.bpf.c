/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Moves open sockets from one congestion control to another, and finds those that hold the code of one. A control that
 * is detached stays in use by the sockets that have it; this is how they get off it. After an upgrade both codes have one
 * name: `from` and `to` are the same then, and sockets that have the code `current` are left alone.
 *
 * A listening socket is left alone, too, unless TCP_CONGESTION was set on it: connections that it accepts get the
 * route's control or the namespace's default, whatever it has itself (tcp_ca_openreq_child). Setting its control would
 * count as the application's own choice, and they would get that one for as long as it listens.
 */
#include "kernel/types.bpf.h"
#include "holders.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* include/net/tcp_states.h */
#define TCP_LISTEN 10
/* include/uapi/linux/in.h */
#define IPPROTO_MPTCP 262
/* include/linux/net.h */
#define SOCK_STREAM 1

/* Set by the loader, each in a section of its own. */
const volatile char from[TCP_CA_NAME_MAX] SEC(".rodata.from") = "from";
const volatile char to[TCP_CA_NAME_MAX] SEC(".rodata.to") = "to";
/* Id of the struct_ops map whose code is the right one; 0: none is. */
const volatile u32 current SEC(".rodata.current") = 0;
/* 0: sockets are only reported. */
const volatile u32 moving SEC(".rodata.moving") = 0;

struct seq_file;
struct file;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct tcp_congestion_ops___named {
	char name[TCP_CA_NAME_MAX];
};

struct inet_connection_sock___ops {
	const struct tcp_congestion_ops___named *icsk_ca_ops;
	u8 icsk_ca_setsockopt : 1;
};

struct sock_common___state {
	volatile unsigned char skc_state;
};

struct sock___stream {
	u16 sk_protocol;
	u16 sk_type;
};

/* What a process has open of a connection of MPTCP (RFC 8684), or of its listening socket. */
struct mptcp_sock {
	struct sock *first; /* its first subflow, or what listens for it; NULL: neither */
};

struct socket {
	struct sock *sk;
};

struct task_struct {
	s32 tgid;
	char comm[16];
};

struct bpf_map {
	u32 id;
};

struct bpf_struct_ops_value {
	char data[0];
};

struct bpf_struct_ops_map {
	struct bpf_map map;
	struct bpf_struct_ops_value kvalue;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct file *file;
};
#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct migrated);
} migrated SEC(".maps");

/* Whether these operations have the name `from`. */
static __always_inline bool is_from(const struct tcp_congestion_ops___named *ops)
{
	for (u32 i = 0; i < TCP_CA_NAME_MAX; i++) {
		char have = ops->name[i];

		if (have != from[i])
			return false;
		if (!have)
			return true;
	}
	return true;
}

/* The id of the map that these operations lie in, as bpf_struct_ops_get() finds it. */
static __always_inline u32 code_of(const struct tcp_congestion_ops___named *ops)
{
	u64 map = (u64)ops - bpf_core_field_offset(struct bpf_struct_ops_map, kvalue) -
		  bpf_core_field_offset(struct bpf_struct_ops_value, data);
	u32 id = 0;

	bpf_probe_read_kernel(&id, sizeof(id),
			      (const void *)(map + bpf_core_field_offset(struct bpf_struct_ops_map, map) +
					     bpf_core_field_offset(struct bpf_map, id)));
	return id;
}

/* By reads that need no pointer which the verifier trusts: it trusts none to a socket of a file on some kernels. */
static __always_inline void describe(struct holder *holder, const void *tp)
{
	const struct inet_connection_sock___ops *icsk = tp;
	const struct tcp_congestion_ops___named *ops = BPF_CORE_READ(icsk, icsk_ca_ops);

	holder->socket = (u64)tp;
	holder->code = code_of(ops);
	holder->state = BPF_CORE_READ((const struct sock_common___state *)tp, skc_state);
	holder->chosen = (u8)BPF_CORE_READ_BITFIELD_PROBED(icsk, icsk_ca_setsockopt);
	bpf_core_read(holder->control, TCP_CA_NAME_MAX, &ops->name);
}

/*
 * The socket of TCP that has the code: a process's own, or, of one of MPTCP, its first subflow or what listens for it, which
 * no process has open. NULL: it has none.
 */
static __always_inline const void *tcp_socket_of(const struct sock *sk)
{
	const struct sock___stream *stream = (const struct sock___stream *)sk;
	u16 family = BPF_CORE_READ((const struct sock_common *)sk, skc_family);

	/* Protocols of other families, and of raw sockets, may have the same numbers. */
	if ((family != AF_INET && family != AF_INET6) || BPF_CORE_READ(stream, sk_type) != SOCK_STREAM)
		return NULL;
	switch (BPF_CORE_READ(stream, sk_protocol)) {
	case IPPROTO_TCP:
		return sk;
	case IPPROTO_MPTCP:
		if (bpf_core_type_exists(struct mptcp_sock))
			return BPF_CORE_READ((const struct mptcp_sock *)sk, first);
	}
	return NULL;
}

static __always_inline void move(struct tcp_sock *tp, const struct holder *holder)
{
	char name[TCP_CA_NAME_MAX];
	struct migrated *count;
	u32 zero = 0;

	count = bpf_map_lookup_elem(&migrated, &zero);
	if (!count)
		return;
	for (u32 i = 0; i < TCP_CA_NAME_MAX; i++)
		name[i] = to[i];
	if (bpf_setsockopt(tp, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name))) {
		count->refused++;
		return;
	}
	count->moved++;
	if (holder->state == TCP_LISTEN)
		count->listening++;
}

SEC("iter/tcp")
int migrate(struct bpf_iter__tcp *context)
{
	struct sock_common *common = context->sk_common;
	const struct inet_connection_sock___ops *icsk;
	struct holder holder = {};
	struct tcp_sock *tp;

	if (!common)
		return 0;
	/* None in TIME_WAIT and for a request: no socket that could change. */
	tp = bpf_skc_to_tcp_sock(common);
	icsk = (const struct inet_connection_sock___ops *)tp;
	if (!tp || !is_from(icsk->icsk_ca_ops))
		return 0;
	describe(&holder, tp);
	if (current && holder.code == current)
		return 0;
	if (moving && (holder.state != TCP_LISTEN || holder.chosen))
		move(tp, &holder);
	else
		bpf_seq_write(context->meta->seq, &holder, sizeof(holder));
	return 0;
}

/* Listening sockets, on any control. */
SEC("iter/tcp")
int listeners(struct bpf_iter__tcp *context)
{
	struct sock_common *common = context->sk_common;
	struct holder holder = {};
	struct tcp_sock *tp;

	if (!common)
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	describe(&holder, tp);
	if (holder.state != TCP_LISTEN)
		return 0;
	holder.port = common->skc_num;
	bpf_seq_write(context->meta->seq, &holder, sizeof(holder));
	return 0;
}

/* Sockets that processes have open, also those that TCP's table has not: neither connected nor listening. */
SEC("iter/task_file")
int holders(struct bpf_iter__task_file *context)
{
	struct task_struct *task = context->task;
	struct file *file = context->file;
	struct holder holder = {};
	struct socket *socket;
	const void *tp;
	struct sock *sk;

	if (!task || !file)
		return 0;
	socket = bpf_sock_from_file(file);
	sk = socket ? socket->sk : NULL;
	tp = sk ? tcp_socket_of(sk) : NULL;
	if (!tp)
		return 0;
	describe(&holder, tp);
	if (__builtin_memcmp(holder.control, "onramp_", 7))
		return 0;
	holder.pid = (u32)task->tgid;
	for (u32 i = 0; i < sizeof(holder.command); i++)
		holder.command[i] = (u8)task->comm[i];
	bpf_seq_write(context->meta->seq, &holder, sizeof(holder));
	return 0;
}
