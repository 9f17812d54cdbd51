/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * From the socket to the events (events.bpf.h): whether a consumer has subscribed to a flow, and what the shell reports
 * (shell/report.h).
 */
#ifndef ONRAMP_OBSERVE_BPF_H
#define ONRAMP_OBSERVE_BPF_H

#include "../shell/report.h"
#include "compat.bpf.h"
#include "events.bpf.h"
#include "learn.bpf.h"
#include "starts.bpf.h"

/*
 * A namespace is read by a helper and not through its pointer: for every pointer that is followed the verifier looks
 * through the names of all the kernel's types, each time that it comes by, and most of an attachment's time went there.
 */
static __always_inline void identify(const struct sock *sk, struct flow_payload *payload)
{
	const struct sock_common *common = &sk->__sk_common;

	if (has_ipv6_addresses(common)) {
		for (u32 i = 0; i < 4; i++) {
			payload->local[i] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
			payload->remote[i] = common->skc_v6_daddr.in6_u.u6_addr32[i];
		}
	} else {
		payload->local[2] = payload->remote[2] = bpf_htonl(0xffff);
		payload->local[3] = common->skc_rcv_saddr;
		payload->remote[3] = common->skc_daddr;
	}
	payload->local_port = common->skc_num;
	payload->remote_port = bpf_ntohs(common->skc_dport);
	payload->cookie = common->skc_cookie.counter;
	payload->netns_cookie = BPF_CORE_READ(common, skc_net.net, net_cookie);
}

/*
 * What is kept of a flow with subscribers, else null. A consumer to which it or its parameters have not been reported
 * gets the flow event now. Call this before the algorithm, so that state and parameters are those of its next call.
 * Where there is no memory, nothing is reported.
 */
static __noinline struct flow_telemetry *observe(struct sock *sk, const struct flow *flow)
{
	u32 profile = flow->header.profile;
	const struct parameter_slot *slot = bpf_map_lookup_elem(&params, &profile);
	struct flow_telemetry *telemetry = bpf_sk_storage_get(&flow_telemetry, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct flow_payload payload = {};

	if (!slot || !telemetry)
		return 0;
	if (telemetry->registrations != telemetry_here.registrations ||
	    telemetry->reported_generation != slot->generation) {
		telemetry->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
		identify(sk, &payload);
		report_flow(flow, telemetry, &payload EXTRA_OF(sk));
	}
	return telemetry->interest ? telemetry : 0;
}

/* The same where a consumer subscribes to a level, else null. */
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
static __always_inline void observe_end(struct sock *sk, const struct flow *flow, struct flow_telemetry *telemetry)
{
	const struct start *start = bpf_sk_storage_get(&starts, sk, 0, 0);
	const struct tcp_sock *tp = tcp_view(sk);
	struct end_payload payload = {
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

	payload.busy_us =
		chrono_us(tp, TCP_CHRONO_BUSY) + payload.receive_window_limited_us + payload.send_buffer_limited_us;
	payload.idle_us = idle_us(flow, payload.busy_us);
	if (start) {
		payload.start_end = start->end;
		payload.jump = start->target;
	}
	emit_end(flow, telemetry, &payload);
}

/* The flow whose header is the shell's. */
static __always_inline struct flow *whole(const struct shell *shell)
{
	return (struct flow *)shell->flow;
}

static __always_inline void report_state(const struct shell *shell, u32 from, u32 to)
{
	struct state_payload payload;

	if (!shell->telemetry)
		return;
	payload = (struct state_payload){
		.bytes_retransmitted = tcp_view(shell->sk)->bytes_retrans,
		.from = from,
		.to = to,
		.cwnd = view_cwnd(shell->sk),
		.ssthresh = view_ssthresh(shell->sk),
		.in_flight = view_in_flight(shell->sk),
	};
	emit_state(whole(shell), shell->telemetry, &payload);
}

static __always_inline void report_restart(const struct shell *shell)
{
	struct restart_payload payload;

	if (!shell->telemetry)
		return;
	payload = (struct restart_payload){
		.slow_starts = shell->flow->slow_starts,
		.cwnd = view_cwnd(shell->sk),
		.ssthresh = view_ssthresh(shell->sk),
	};
	emit_restart(whole(shell), shell->telemetry, &payload);
}

/* Counts an ACK to its round, which it may end. */
static __always_inline void follow_round(struct sock *sk, const struct flow *flow, struct flow_telemetry *telemetry,
					 const struct ack_payload *payload)
{
	struct round *round = &telemetry->round;
	const struct ack *ack = &payload->ack;

	if (!round->start_us) {
		begin_round(round, ack);
		return;
	}
	count_in_round(round, ack);
	if (!round_is_over(round->end, ack))
		return;
	emit_round(flow, telemetry, payload EXTRA_OF(sk));
	round->number++;
	begin_round(round, ack);
}

/* How far a start from memory has come, which has its turn after this. By itself, for few have one. */
static __noinline void report_start(struct sock *sk, struct ack_payload *payload)
{
	const struct start *start = bpf_sk_storage_get(&starts, sk, 0, 0);

	if (!start)
		return;
	payload->start_phase = (u8)start->phase;
	payload->start_end = (u8)start->end;
	payload->jump = start->target;
}

static __always_inline void report_ack(const struct shell *shell, struct ack_payload *payload)
{
	struct flow_telemetry *telemetry = shell->telemetry;

	if (payload->called)
		count_verdict(shell->sk, shell->kept, payload->verdict.outcome);
	if (!telemetry)
		return;
	payload->flags = shell->flow->flags;
	payload->generation = shell->flow->generation;
	report_start(shell->sk, payload);
	emit_ack(whole(shell), telemetry, payload);
	if (telemetry->interest & EVERY_CONSUMER(LEVEL_ROUND))
		follow_round(shell->sk, whole(shell), telemetry, payload);
	else
		telemetry->round.start_us = 0;
}

static __always_inline void report_loss(const struct shell *shell, const struct loss_payload *payload)
{
	if (shell->telemetry)
		emit_loss(whole(shell), shell->telemetry, payload);
}

static __always_inline void report_undo(const struct shell *shell, struct undo_payload *payload)
{
	if (shell->telemetry)
		emit_undo(whole(shell), shell->telemetry, payload);
}

static __always_inline void report_exit(const struct shell *shell)
{
	if (shell->telemetry)
		emit_exit(whole(shell), shell->telemetry, &shell->flow->exit);
	if (start_policies & START_BOTH)
		learn_path(shell->sk, shell->flow, false);
}

#endif
