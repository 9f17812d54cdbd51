/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Gives TCP connections of a cgroup the congestion control, and the initial window, that a table of rules (select.h) has
 * for them. It is asked when the handshake is over and before the kernel initialises the control: the route's control is
 * known by then, the initial window is set, and the control that is chosen here is the only one that is initialised.
 *
 * What an application has chosen by TCP_CONGESTION stays, before (on the socket, or on the listening one) or after. So
 * does what a program of a cgroup further down has chosen, for those are asked first.
 */
#include "kernel/compat.bpf.h"
#include "kernel/profile_names.bpf.h"
#include "kernel/profiles.bpf.h"
#include "kernel/starts.bpf.h"
#include "kernel/types.bpf.h"
#include "select.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* include/uapi/linux/bpf.h */
enum {
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	TCP_BPF_IW = 1001,
};

struct bpf_sock;
struct cgroup;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct bpf_sock_ops {
	u32 op;
	struct bpf_sock *sk;
};

struct kernfs_node {
	u64 id;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock___placed {
	struct sock_cgroup_data sk_cgrp_data;
};

struct inet_connection_sock___choice {
	u8 icsk_ca_setsockopt : 1;
};
#pragma clang attribute pop

struct select_table {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SELECT_RULES_MAX);
	__uint(key_size, sizeof(struct select_key));
	__uint(value_size, sizeof(struct select_rule));
};

/* The sizes above say nothing of what is in them: only so does the type information, which a test compares with Rust's. */
const union {
	struct select_key key;
	struct select_rule rule;
} *const layout = 0;

/* One table. In a map of its own, so that all rules are replaced at once. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__array(values, struct select_table);
} tables SEC(".maps");

/* A connection, and the rule that decides about it as far as is known. */
struct search {
	void *table;
	u32 shapes;
	u16 port; /* in network order */
	u8 side;
	struct select_key key;	     /* of the rules that are looked at */
	const struct cgroup *cgroup; /* the next one to look at */
	const struct select_rule *rule;
	u32 rank;
};

/*
 * Looks at the rules of one shape. Of two rules the one of the higher rank decides: it has the longer prefix, then a port,
 * then the nearer cgroup, then a side. A rule without a prefix has fewer bits than any with one.
 */
static __always_inline void look(struct search *search, u8 side, u32 named, u64 cgroup, u32 nearness)
{
	u16 port = named & SELECT_NAMES_PORT ? search->port : 0;
	const struct select_rule *rule;
	u32 rank;

	if (!(search->shapes >> (side * SELECT_NAMED + named) & 1))
		return;
	search->key.side = side;
	__builtin_memcpy(search->key.port, &port, sizeof(port));
	__builtin_memcpy(search->key.cgroup, &cgroup, sizeof(cgroup));
	rule = bpf_map_lookup_elem(search->table, &search->key);
	if (!rule)
		return;
	rank = rule->bits * 2 + (named & SELECT_NAMES_PORT);
	rank = (rank * 2 * SELECT_CGROUPS_MAX + nearness) * 2 + (side != SELECT_BOTH);
	if (rank > search->rank) {
		search->rule = rule;
		search->rank = rank;
	}
}

/* Looks at the rules that name this cgroup, or none: with the port and without, for one side and for both. */
static __always_inline void look_around(struct search *search, u32 named, u64 cgroup, u32 nearness)
{
	u8 side = search->side;

	look(search, side, named, cgroup, nearness);
	look(search, SELECT_BOTH, named, cgroup, nearness);
	look(search, side, named | SELECT_NAMES_PORT, cgroup, nearness);
	look(search, SELECT_BOTH, named | SELECT_NAMES_PORT, cgroup, nearness);
}

/* For bpf_loop: 1 ends it. */
static long look_at_cgroup(u32 index, struct search *search)
{
	const struct cgroup *cgroup = search->cgroup;
	const struct cgroup_subsys_state *parent = cgroup->self.parent;

	look_around(search, SELECT_NAMES_CGROUP, cgroup->kn->id, SELECT_CGROUPS_MAX - index);
	if (!parent)
		return 1;
	search->cgroup = parent->cgroup;
	return 0;
}

static __always_inline void set_peer(struct select_key *key, const struct sock_common *common)
{
	u32 address[4] = { common->skc_daddr };

	key->family = SELECT_IPV4;
	key->bits = SELECT_HEAD_BITS + 32;
	if (has_ipv6_addresses(common)) {
		for (u32 i = 0; i < 4; i++)
			address[i] = common->skc_v6_daddr.in6_u.u6_addr32[i];
		/* IPv4 over a socket of IPv6 (RFC 4291, section 2.5.5.2). */
		if (!address[0] && !address[1] && address[2] == bpf_htonl(0xffff)) {
			address[0] = address[3];
			address[2] = address[3] = 0;
		} else {
			key->family = SELECT_IPV6;
			key->bits = SELECT_HEAD_BITS + 128;
		}
	}
	__builtin_memcpy(key->address, address, sizeof(address));
}

static __always_inline const struct select_rule *decide(void *table, struct tcp_sock *tp, u8 side)
{
	const struct sock_common *common = (const struct sock_common *)tp;
	struct select_key shapes = { .bits = SELECT_SHAPES_BITS, .side = SELECT_SHAPES };
	const struct select_rule *known = bpf_map_lookup_elem(table, &shapes);
	struct search search = { .table = table };

	if (!known)
		return NULL;
	search.shapes = known->bits;
	search.side = side;
	search.port = side == SELECT_ACCEPT ? bpf_htons(common->skc_num) : common->skc_dport;
	set_peer(&search.key, common);
	look_around(&search, 0, 0, 0);
	search.cgroup = ((const struct sock___placed *)tp)->sk_cgrp_data.cgroup;
	if (search.shapes & SELECT_CGROUP_SHAPES && search.cgroup)
		bpf_loop(SELECT_CGROUPS_MAX, look_at_cgroup, &search, 0);
	return search.rule;
}

/* Records which parameters the socket is to have, for the control, which looks them up when it is initialised. */
static __always_inline void name_profile(struct bpf_sock *sk, u32 number)
{
	struct profile_name *name;

	if (!number)
		return;
	name = bpf_map_lookup_elem(&profile_names, &number);
	if (name)
		bpf_sk_storage_get(&profile_choices, sk, name, BPF_SK_STORAGE_GET_F_CREATE);
}

/* Tells the control what is known of the path. A socket that connects again starts anew. */
static __always_inline void name_path(struct bpf_sock *sk, const struct select_rule *rule)
{
	struct start *known, start;

	if (!rule->resume_kbps || !rule->resume_rtt_us)
		return;
	start_remembers(&start, rule->resume_kbps * 125ULL, rule->resume_rtt_us, START_BOTH);
	known = bpf_sk_storage_get(&starts, sk, &start, BPF_SK_STORAGE_GET_F_CREATE);
	if (known)
		*known = start;
}

/* The window first: a control may look at it when it is initialised. A control that is not there changes nothing. */
static __always_inline void apply(struct bpf_sock_ops *context, const struct tcp_sock *tp,
				  const struct select_rule *rule)
{
	int window = rule->initial_window, before = tp->snd_cwnd;
	char control[TCP_CA_NAME_MAX] = {};

	__builtin_memcpy(control, rule->control, sizeof(rule->control));
	if (window)
		bpf_setsockopt(context, IPPROTO_TCP, TCP_BPF_IW, &window, sizeof(window));
	if (bpf_setsockopt(context, IPPROTO_TCP, TCP_CONGESTION, control, sizeof(control)) && window)
		bpf_setsockopt(context, IPPROTO_TCP, TCP_BPF_IW, &before, sizeof(before));
}

SEC("sockops")
int select_control(struct bpf_sock_ops *context)
{
	const struct select_rule *rule;
	struct bpf_sock *sk;
	struct tcp_sock *tp;
	u32 zero = 0;
	void *table;
	u8 side;

	if (context->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		side = SELECT_CONNECT;
	else if (context->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		side = SELECT_ACCEPT;
	else
		return 1;
	sk = context->sk;
	if (!sk)
		return 1;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || BPF_CORE_READ_BITFIELD((struct inet_connection_sock___choice *)tp, icsk_ca_setsockopt))
		return 1;
	table = bpf_map_lookup_elem(&tables, &zero);
	if (!table)
		return 1;
	rule = decide(table, tp, side);
	if (rule) {
		name_profile(sk, rule->profile);
		name_path(sk, rule);
		apply(context, tp, rule);
	}
	return 1;
}
