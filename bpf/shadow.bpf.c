/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Watches the slow starts of flows on any congestion control, from tracepoints, and changes nothing in them. What it
 * sees goes into one ring; the algorithms run in the process that reads it. Nothing is pinned, so all of it ends with
 * that process.
 */
#include "kernel/compat.bpf.h"
#include "kernel/types.bpf.h"
#include "algorithm/algorithm.h"
#include "shadow.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* 1: follow open flows, too. Set by the loader, in a section of its own. */
const volatile u32 follow_established SEC(".rodata.established") = 0;
/* 1: follow flows past their slow start, too. Set by the loader. */
const volatile u32 past SEC(".rodata.past") = 0;
/* Of so many flows one is followed. Set by the loader. */
const volatile u32 sampling SEC(".rodata.sampling") = 1;

/* include/net/tcp_states.h */
#define TCP_ESTABLISHED 1
#define TCP_CLOSE 7

struct sk_buff;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct tcp_rack {
	u32 rtt_us;
};

struct tcp_sock___shadow {
	u32 rcv_nxt;
	struct tcp_rack rack;
};

struct tcp_congestion_ops___shadow {
	char name[TCP_CA_NAME_MAX];
};

struct inet_connection_sock___shadow {
	const struct tcp_congestion_ops___shadow *icsk_ca_ops;
};
#pragma clang attribute pop

struct watched {
	u64 flow;     /* 0: passed over */
	u32 sequence; /* snapshots so far */
	u8 established;
	u8 starting; /* was in slow start at its last snapshot */
	u16 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct watched);
} shadow_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 32 << 20);
} shadow_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct snapshot_counts);
} shadow_counts SEC(".maps");

/* The reader is woken when so much waits; otherwise it looks from time to time. */
#define WAKE_BYTES (4 << 20)

static __always_inline struct snapshot_counts *counts(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&shadow_counts, &zero);
}

static __always_inline void identify(const struct sock_common *common, struct socket_snapshot *snapshot)
{
	bool version_six = has_ipv6_addresses(common);

	for (u32 i = 0; i < 4; i++) {
		snapshot->local[i] = version_six ? common->skc_v6_rcv_saddr.in6_u.u6_addr32[i] : 0;
		snapshot->remote[i] = version_six ? common->skc_v6_daddr.in6_u.u6_addr32[i] : 0;
	}
	if (!version_six) {
		snapshot->local[2] = snapshot->remote[2] = bpf_htonl(0xffff);
		snapshot->local[3] = common->skc_rcv_saddr;
		snapshot->remote[3] = common->skc_daddr;
	}
	snapshot->local_port = common->skc_num;
	snapshot->remote_port = bpf_ntohs(common->skc_dport);
	snapshot->netns = common->skc_net.net->ns.inum;
}

static __noinline void look(struct tcp_sock *tp, struct socket_snapshot *snapshot)
{
	const struct tcp_sock___shadow *more = (const struct tcp_sock___shadow *)tp;
	const struct inet_connection_sock___shadow *named = (const struct inet_connection_sock___shadow *)tp;
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)tp;
	const struct tcp_congestion_ops___shadow *ops = named->icsk_ca_ops;
	const struct sock *sk = (const struct sock *)tp;

	snapshot->bytes_acked = tp->bytes_acked;
	snapshot->bytes_sent = tp->bytes_sent;
	snapshot->bytes_retransmitted = tp->bytes_retrans;
	snapshot->pacing_rate = sk->sk_pacing_rate;
	snapshot->state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	snapshot->snd_una = tp->snd_una;
	snapshot->snd_nxt = tp->snd_nxt;
	snapshot->rcv_nxt = more->rcv_nxt;
	snapshot->cwnd = tp->snd_cwnd;
	snapshot->ssthresh = tp->snd_ssthresh;
	snapshot->mss = tp->mss_cache;
	snapshot->srtt = tp->srtt_us;
	snapshot->min_rtt_us = tp->rtt_min.s[0].v;
	snapshot->rack_rtt_us = more->rack.rtt_us;
	snapshot->packets_out = tp->packets_out;
	snapshot->sacked_out = tp->sacked_out;
	snapshot->lost_out = tp->lost_out;
	snapshot->retrans_out = tp->retrans_out;
	snapshot->delivered = tp->delivered;
	snapshot->gso_max_size = sk->sk_gso_max_size;
	snapshot->flags = (tp->app_limited ? ACK_APP_LIMITED : 0) |
			  (BPF_CORE_READ_BITFIELD(tp, rate_app_limited) ? ACK_RATE_APP_LIMITED : 0) |
			  (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) ? ACK_CWND_LIMITED : 0) |
			  (sk->sk_pacing_status != SK_PACING_NONE ? ACK_PACED : 0);
	snapshot->receiver_clock = tp->rx_opt.rcv_tsval;
	snapshot->receive_window = tp->snd_wnd;
	snapshot->ecn = !!(tp->ecn_flags & TCP_ECN_ANY);
	for (u32 i = 0; i < sizeof(snapshot->control); i++)
		snapshot->control[i] = ops->name[i];
	identify(&sk->__sk_common, snapshot);
}

/* Emits a snapshot; the reader pairs snapshots by their sequence. */
static __noinline void emit_snapshot(struct tcp_sock *tp, struct watched *watched, u32 kind, u32 new_state)
{
	struct snapshot_counts *count = counts();
	struct socket_snapshot *snapshot;

	watched->sequence++;
	snapshot = bpf_ringbuf_reserve(&shadow_ring, sizeof(*snapshot), 0);
	if (!snapshot) {
		if (count)
			__sync_fetch_and_add(&count->lost, 1);
		return;
	}
	snapshot->time_ns = bpf_ktime_get_ns();
	snapshot->flow = watched->flow;
	snapshot->kind = kind;
	snapshot->sequence = watched->sequence;
	snapshot->established = watched->established;
	snapshot->new_state = new_state;
	look(tp, snapshot);
	bpf_ringbuf_submit(snapshot, bpf_ringbuf_query(&shadow_ring, BPF_RB_AVAIL_DATA) >= WAKE_BYTES
					     ? BPF_RB_FORCE_WAKEUP
					     : BPF_RB_NO_WAKEUP);
}

/*
 * Whether a flow is one of those that are followed. Both ends of a connection may be here, with numbers next to each
 * other, so numbers are spread (multiplicative hashing by the golden ratio).
 */
static __always_inline bool is_sampled(u64 flow)
{
	return sampling < 2 || (flow * 0x9e3779b97f4a7c15ull >> 32) % sampling == 0;
}

/* Begins to follow a flow, unless it is to be passed over. */
static __always_inline struct watched *meet(struct sock *sk, bool established)
{
	struct watched *watched = bpf_sk_storage_get(&shadow_flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct snapshot_counts *count = counts();
	u64 flow;

	if (!count)
		return NULL;
	if (!watched) {
		__sync_fetch_and_add(&count->unfollowed, 1);
		return NULL;
	}
	watched->established = established;
	if (established && !follow_established) {
		__sync_fetch_and_add(&count->established, 1);
		return watched;
	}
	flow = __sync_fetch_and_add(&count->flows, 1) + 1;
	if (is_sampled(flow))
		watched->flow = flow;
	return watched;
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(shadow_ack, struct sock *sk, struct sk_buff *skb)
{
	struct watched *watched = bpf_sk_storage_get(&shadow_flows, sk, 0, 0);
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	bool starting;

	if (!tp)
		return 0;
	/* Who sends nothing has no slow start to follow. */
	if (!watched && tp->packets_out)
		watched = meet(sk, true);
	if (!watched || !watched->flow)
		return 0;
	/* The first ACK outside slow start is reported, too: it completes the snapshot before. */
	starting = tp->snd_cwnd < tp->snd_ssthresh;
	if (starting || watched->starting || past)
		emit_snapshot(tp, watched, SNAPSHOT_ACK, 0);
	watched->starting = starting;
	return 0;
}

SEC("tp_btf/tcp_cong_state_set")
int BPF_PROG(shadow_state, struct sock *sk, const u8 new_state)
{
	struct watched *watched = bpf_sk_storage_get(&shadow_flows, sk, 0, 0);
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	if (tp && watched && watched->flow && watched->starting)
		emit_snapshot(tp, watched, SNAPSHOT_STATE, new_state);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(shadow_life, struct sock *sk, const int old, const int new)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct watched *watched;

	if (!tp)
		return 0;
	if (new == TCP_ESTABLISHED) {
		meet(sk, false);
		return 0;
	}
	watched = bpf_sk_storage_get(&shadow_flows, sk, 0, 0);
	if (!watched || !watched->flow)
		return 0;
	if (new == TCP_CLOSE) {
		emit_snapshot(tp, watched, SNAPSHOT_END, 0);
		/* tcp_disconnect() sets the congestion state of what has ended, and the socket may connect again. */
		watched->flow = 0;
	} else if (old == TCP_ESTABLISHED) {
		emit_snapshot(tp, watched, SNAPSHOT_SHUT, 0);
	}
	return 0;
}
