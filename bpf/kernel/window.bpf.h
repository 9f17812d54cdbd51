/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a verdict does: the only place that makes windows, thresholds, pacing rates and exit records of one. A base's own
 * window, where the kernel leaves it to the control, is in control_start of congestion_ops.bpf.h and in base.bpf.h.
 */
#ifndef ONRAMP_WINDOW_BPF_H
#define ONRAMP_WINDOW_BPF_H

#include "base.bpf.h"
#include "limits.bpf.h"

static __always_inline u32 bounded_window(const struct tcp_sock *tp, u32 window)
{
	window = (u32)max_u64(window, MIN_WINDOW);
	return (u32)min_u64(window, tp->snd_cwnd_clamp);
}

/* tcp_packets_in_flight */
static __always_inline u32 packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* 0: none yet. */
static __always_inline u32 min_rtt_us(const struct tcp_sock *tp)
{
	u32 minimum = tp->rtt_min.s[0].v;

	return minimum == ~0U ? 0 : minimum;
}

/* What an algorithm may know of this moment. `sample` is null where there is no acknowledgement. */
static __always_inline void describe(struct sock *sk, const struct ack_sample *sample, struct ack *ack)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 mss = tp->mss_cache;

	ack->now_us = tp->tcp_mstamp;
	ack->bytes_acked = tp->bytes_acked;
	ack->bytes_sent = tp->bytes_sent - tp->bytes_retrans;
	ack->bytes_outstanding = tp->snd_nxt - tp->snd_una;
	ack->delivered = tp->delivered;
	ack->acked = sample ? sample->pkts_acked : 0;
	ack->rtt_us = sample ? sample->rtt_us : -1;
	ack->smoothed_rtt_us = tp->srtt_us >> 3;
	ack->min_rtt_us = min_rtt_us(tp);
	ack->cwnd = tp->snd_cwnd;
	ack->ssthresh = tp->snd_ssthresh;
	ack->in_flight = packets_in_flight(tp);
	ack->mss = mss ? mss : 1;
	ack->pacing_rate = sk->sk_pacing_rate;
	ack->gso_max_size = sk->sk_gso_max_size;
	/* Fields of one bit are 0 or 1. */
	ack->flags = (tp->app_limited ? ACK_APP_LIMITED : 0) |
		     (u32)BPF_CORE_READ_BITFIELD(tp, rate_app_limited) * ACK_RATE_APP_LIMITED |
		     (u32)BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) * ACK_CWND_LIMITED |
		     (sk->sk_pacing_status != SK_PACING_NONE ? ACK_PACED : 0);
	ack->receiver_clock = tp->rx_opt.rcv_tsval;
	ack->receive_window = tp->snd_wnd;
}

static __always_inline void fill_record(struct exit_record *record, u64 start_us, const struct ack *ack, u32 reason)
{
	record->reason = (u8)reason;
	record->at_us = ack->now_us - start_us;
	record->bytes_acked = ack->bytes_acked;
	record->window = ack->cwnd;
	record->in_flight = ack->in_flight;
	record->mss = (u16)ack->mss;
	record->rtt_us = ack->rtt_us >= 0 ? (u32)ack->rtt_us : ack->smoothed_rtt_us;
	record->min_rtt_us = ack->min_rtt_us;
}

/* The first slow start is left, or will be once the drain is done. Later ones are counted, not recorded. */
static __always_inline void record_exit(struct flow_header *flow, const struct ack *ack, u32 reason)
{
	if (flow->exit.reason != EXIT_NONE)
		return;
	fill_record(&flow->exit, flow->start_us, ack, reason);
	flow->exit.window_after = 0;
}

/* The algorithm would have left this slow start. The first time is recorded. */
static __always_inline void record_observed(struct flow_header *flow, struct exit_record *observed,
					    const struct ack *ack)
{
	flow->flags |= FLOW_OBSERVED;
	if (observed->reason == EXIT_NONE)
		fill_record(observed, flow->start_us, ack, EXIT_ALGORITHM);
}

/* Notes what a verdict on an ACK in slow start wants, and does nothing of it. */
static __always_inline void note_verdict(struct flow_header *flow, struct exit_record *observed, const struct ack *ack,
					 const struct verdict *verdict)
{
	if (verdict->ssthresh && observed->reason == EXIT_NONE)
		observed->window_after = verdict->ssthresh;
	if (verdict->outcome == OUTCOME_EXIT || (verdict->ssthresh && verdict->ssthresh <= ack->cwnd))
		record_observed(flow, observed, ack);
}

/*
 * Has TCP pace by itself where nobody does. fq may say that it does on another processor at any time; by an exchange its word
 * stays, and no packet waits twice.
 */
static __always_inline void start_pacing(struct sock *sk, struct limits *limits)
{
	if (sk->sk_pacing_status != SK_PACING_NONE)
		return;
	if (__sync_val_compare_and_swap(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED) == SK_PACING_NONE)
		limits->flags |= LIMITS_PACED;
}

/* Undoes start_pacing, unless the application has asked for pacing in the meantime. */
static __always_inline void give_back_pacing(struct sock *sk, struct limits *limits)
{
	limits->pacing_rate = 0;
	if (!(limits->flags & LIMITS_PACED))
		return;
	limits->flags &= ~LIMITS_PACED;
	if (sk->sk_max_pacing_rate == ~0UL)
		__sync_val_compare_and_swap(&sk->sk_pacing_status, SK_PACING_NEEDED, SK_PACING_NONE);
}

/*
 * Nothing is spaced from here on. Packets in a spaced burst are stamped with the time at which they will have left; if
 * the socket stopped pacing then, those after them would be stamped earlier, and RTTs come out short by up to the
 * burst. So it is given back once that time has come: `pace` tries again.
 */
static __always_inline void stop_pacing(struct sock *sk, struct limits *limits)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	limits->pacing_rate = 0;
	if (limits->flags & LIMITS_PACED && tp->tcp_wstamp_ns <= tp->tcp_clock_cache)
		give_back_pacing(sk, limits);
}

/* One window per smoothed RTT, bytes per second; there is an RTT. */
static __always_inline u64 window_rate(const struct tcp_sock *tp)
{
	return 8000000ULL * tp->snd_cwnd * tp->mss_cache / tp->srtt_us;
}

/* The window is filled in an RTT at the latest. */
static __always_inline void expect_filled(const struct tcp_sock *tp, struct limits *limits)
{
	limits->filled_us = (u32)tp->tcp_mstamp + (tp->srtt_us >> 3);
}

/* Whether what the window allows has been sent since, as far as can be told. */
static __always_inline bool is_filled(const struct tcp_sock *tp, const struct limits *limits)
{
	return packets_in_flight(tp) + tp->snd_cwnd / 32 >= tp->snd_cwnd || !tp->srtt_us ||
	       (s32)((u32)tp->tcp_mstamp - limits->filled_us) >= 0;
}

/*
 * Pacing. The kernel computes sk_pacing_rate anew with every ACK, after the algorithm's turn and before anything is
 * sent, so a rate written then would be lost, and SO_MAX_PACING_RATE would overwrite the application's own and outlive
 * the control. But it asks for min_tso_segs each time before it sends: that is where the rate is written, in place of
 * the kernel's own but below what the application allows, and nothing needs to be put back.
 *
 * Slow start may end with a window larger than what is in flight, because the difference was still being spaced. The
 * algorithm's rate ends there; from then on one window leaves per RTT until no more than a 32nd of it is left to fill,
 * so that the difference does not leave as one burst. It is filled after one RTT; where ACKs free more than a 32nd at
 * once, only the time says so.
 */
static __always_inline void pace(struct sock *sk, struct limits *limits)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 rate = (u64)limits->pacing_rate * PACING_RATE_UNIT;

	if (!rate) {
		if (!(limits->flags & LIMITS_PACED))
			return;
		if (is_filled(tp, limits)) {
			stop_pacing(sk, limits);
			return;
		}
		rate = window_rate(tp);
	}
	sk->sk_pacing_rate = min_u64(rate, sk->sk_max_pacing_rate);
}

/* Slow start is over. */
static __always_inline void finish_exit(struct sock *sk, struct flow_header *flow, struct limits *limits, u32 window)
{
	flow->flags &= ~(FLOW_SLOW_START | FLOW_EXITING | FLOW_AIMED);
	limits->flags &= ~LIMITS_GROWTH;
	limits->pacing_rate = 0;
	if (!observing)
		base_left(sk);
	expect_filled(tcp_sk(sk), limits);
	if (flow->exit.reason != EXIT_NONE && !flow->exit.window_after) {
		flow->exit.window_after = window;
		flow->flags |= FLOW_UNTOLD;
	}
}

static __always_inline u32 rate_in_units(u64 rate)
{
	return (u32)min_u64((rate + PACING_RATE_UNIT - 1) / PACING_RATE_UNIT, ~0U);
}

/* Applies what a verdict says of the window, its growth and pacing, as far as an algorithm with these traits answers it. */
static __always_inline void apply_window(struct sock *sk, struct flow_header *flow, struct limits *limits,
					 const struct verdict *verdict, u32 traits)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (traits & TRAIT_LIMITS_GROWTH) {
		/* Of a phase in which the window is held. */
		flow->undo_limit = verdict->undo_limit;
		if (verdict->growth == GROWTH_LIMITED) {
			/* No ACK is of more segments. */
			limits->growth = (u16)min_u64(verdict->growth_limit, 0xffff);
			limits->flags |= LIMITS_GROWTH;
		} else {
			limits->flags &= ~LIMITS_GROWTH;
		}
	}
	if (traits & TRAIT_PACES) {
		if (verdict->pacing_rate) {
			limits->pacing_rate = rate_in_units(verdict->pacing_rate);
			start_pacing(sk, limits);
		} else {
			stop_pacing(sk, limits);
		}
	}
	if (verdict->cwnd)
		tp->snd_cwnd = bounded_window(tp, verdict->cwnd);
}

/* Applies a verdict on an ACK in slow start. */
static __always_inline void apply_verdict(struct sock *sk, struct flow_header *flow, struct limits *limits,
					  const struct ack *ack, const struct verdict *verdict, u32 traits)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (verdict->outcome == OUTCOME_EXIT) {
		record_exit(flow, ack, EXIT_ALGORITHM);
		flow->flags |= FLOW_EXITING;
	}
	apply_window(sk, flow, limits, verdict, traits);
	if (verdict->ssthresh) {
		flow->flags |= FLOW_AIMED;
		tp->snd_ssthresh = (u32)max_u64(verdict->ssthresh, MIN_WINDOW);
		if (tp->snd_cwnd >= tp->snd_ssthresh)
			finish_exit(sk, flow, limits, tp->snd_cwnd);
	}
}

/* The base has grown the window from `before` segments; takes back what exceeds the last verdict's limit. */
static __always_inline void limit_growth(struct tcp_sock *tp, const struct limits *limits, u32 before)
{
	u64 limit = (u64)before + limits->growth;

	if (tp->snd_cwnd > limit)
		tp->snd_cwnd = (u32)limit;
}

#endif
