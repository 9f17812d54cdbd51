/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * From the socket to the events (events.bpf.h): whether anybody wants to hear of a flow, and what is told at each
 * moment of its life.
 */
#ifndef ONRAMP_OBSERVE_BPF_H
#define ONRAMP_OBSERVE_BPF_H

#include "compat.bpf.h"
#include "events.bpf.h"

/*
 * A namespace is read by a helper and not through its pointer: for every pointer that is followed the verifier looks
 * through the names of all the kernel's types, each time that it comes by, and most of an attachment's time went there.
 */
static __always_inline void identify(const struct sock *sk, struct flow_told *told)
{
	const struct sock_common *common = &sk->__sk_common;

	if (has_ipv6_addresses(common)) {
		for (u32 i = 0; i < 4; i++) {
			told->local[i] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
			told->remote[i] = common->skc_v6_daddr.in6_u.u6_addr32[i];
		}
	} else {
		told->local[2] = told->remote[2] = bpf_htonl(0xffff);
		told->local[3] = common->skc_rcv_saddr;
		told->remote[3] = common->skc_daddr;
	}
	told->local_port = common->skc_num;
	told->remote_port = bpf_ntohs(common->skc_dport);
	told->cookie = common->skc_cookie.counter;
	told->netns_cookie = BPF_CORE_READ(common, skc_net.net, net_cookie);
}

/*
 * What is kept of a flow that anybody wants to hear of, else null; whoever has not heard of it, or of its parameters, does
 * so now. To be called before the algorithm is, so that its state and parameters are those with which it will judge.
 * Where there is no memory, nobody hears of it.
 */
static __noinline struct flow_telemetry *observe(struct sock *sk, const struct flow *flow)
{
	const struct telemetry *here = telemetry_here();
	u32 profile = flow->header.profile;
	const struct parameter_slot *slot = bpf_map_lookup_elem(&params, &profile);
	struct flow_telemetry *heard = bpf_sk_storage_get(&flow_telemetry, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct flow_told told = {};

	if (!here || !slot || !heard)
		return 0;
	if (heard->registrations != here->registrations || heard->told_generation != slot->generation) {
		heard->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
		identify(sk, &told);
		meet_flow(flow, heard, &told EXTRA_OF(sk));
	}
	return heard->interest ? heard : 0;
}

/* The same where somebody wants events of a level, else null. */
static __always_inline struct flow_telemetry *observe_at(struct sock *sk, const struct flow *flow, u32 level)
{
	return wanted(level) ? observe(sk, flow) : 0;
}

/* Microseconds in a jiffy. Set by the loader, in a section of its own. */
const volatile u32 tick_us SEC(".rodata.tick") = 4000;

/* How long the flow has been in a state of enum tcp_chrono, from 1, as tcp_info has it. */
static __always_inline u64 chrono_us(const struct tcp_sock *tp, u32 type)
{
	u32 jiffies = tp->chrono_stat[type - 1];

	if (BPF_CORE_READ_BITFIELD(tp, chrono_type) == type)
		jiffies += (u32)bpf_jiffies64() - tp->chrono_start;
	return (u64)jiffies * tick_us;
}

/* Time since the first data was sent without data to send. */
static __always_inline u64 idle_us(const struct flow *flow, u64 busy_us)
{
	u64 start_us = flow->header.start_us;
	u64 since_us = start_us ? bpf_ktime_get_ns() / 1000 - start_us : 0;

	return since_us > busy_us ? since_us - busy_us : 0;
}

/* The flow ends, or goes to another control. */
static __always_inline void observe_end(const struct sock *sk, const struct flow *flow, struct flow_telemetry *heard)
{
	const struct tcp_sock *tp = tcp_view(sk);
	struct end_told told = {
		.bytes_acked = view_bytes_acked(sk),
		.bytes_sent = view_bytes_sent(sk),
		.bytes_retransmitted = tcp_view(sk)->bytes_retrans,
		.smoothed_rtt_us = view_srtt_eighths_us(sk) >> 3,
		.min_rtt_us = view_min_rtt_us(sk),
		.cwnd = view_cwnd(sk),
		.ssthresh = view_ssthresh(sk),
		.receive_window_limited_us = chrono_us(tp, TCP_CHRONO_RWND_LIMITED),
		.send_buffer_limited_us = chrono_us(tp, TCP_CHRONO_SNDBUF_LIMITED),
	};

	told.busy_us = chrono_us(tp, TCP_CHRONO_BUSY) + told.receive_window_limited_us + told.send_buffer_limited_us;
	told.idle_us = idle_us(flow, told.busy_us);
	tell_end(flow, heard, &told);
}

static __always_inline void observe_state(const struct sock *sk, const struct flow *flow, struct flow_telemetry *heard,
					  u32 from, u32 to)
{
	struct state_told told = {
		.bytes_retransmitted = tcp_view(sk)->bytes_retrans,
		.from = from,
		.to = to,
		.cwnd = view_cwnd(sk),
		.ssthresh = view_ssthresh(sk),
		.in_flight = view_in_flight(sk),
	};

	tell_state(flow, heard, &told);
}

static __always_inline void observe_restart(const struct flow *flow, struct flow_telemetry *heard,
					    const struct ack *ack)
{
	struct restart_told told = {
		.slow_starts = flow->header.slow_starts,
		.cwnd = ack->cwnd,
		.ssthresh = ack->ssthresh,
	};

	tell_restart(flow, heard, &told);
}

/* Counts an ACK to its round, which it may end. */
static __always_inline void follow_round(struct sock *sk, const struct flow *flow, struct flow_telemetry *heard,
					 const struct ack_told *told)
{
	struct round *round = &heard->round;
	const struct ack *ack = &told->ack;

	if (!round->start_us) {
		begin_round(round, ack);
		return;
	}
	count_in_round(round, ack);
	if (!round_is_over(round->end, ack))
		return;
	tell_round(flow, heard, told EXTRA_OF(sk));
	round->number++;
	begin_round(round, ack);
}

/* An ACK of an observed flow, after the algorithm's turn if it had one. */
static __always_inline void observe_ack(struct sock *sk, const struct flow *flow, struct flow_telemetry *heard,
					struct ack_told *told)
{
	told->flags = flow->header.flags;
	told->generation = flow->header.generation;
	tell_ack(flow, heard, told);
	if (heard->interest & EVERY_CONSUMER(LEVEL_ROUND))
		follow_round(sk, flow, heard, told);
	else
		heard->round.start_us = 0;
}

/* The exit record, once it is complete and has its name. */
static __always_inline void observe_exit(struct sock *sk, struct flow *flow)
{
	struct flow_telemetry *heard;

	if (!(flow->header.flags & FLOW_UNTOLD))
		return;
	flow->header.flags &= ~FLOW_UNTOLD;
	heard = observe_at(sk, flow, LEVEL_EXIT);
	if (heard)
		tell_exit(flow, heard, &flow->header.exit);
}

#endif
