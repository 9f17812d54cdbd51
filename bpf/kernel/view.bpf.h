/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The shell's accessors (shell/view.h) over the kernel's socket. */
#ifndef ONRAMP_VIEW_BPF_H
#define ONRAMP_VIEW_BPF_H

#include "../shell/view.h"
#include "compat.bpf.h"

static __always_inline const struct tcp_sock *tcp_view(const struct sock *sk)
{
	return (const struct tcp_sock *)sk;
}

/*
 * A field of some bits of a byte. BPF_CORE_READ_BITFIELD is for fields of any width and sign; what it has for the others
 * is executed with every ACK.
 */
#define READ_BITS(structure, field)                                                                                    \
	((u64) * (const u8 *)((const void *)(structure) + __CORE_RELO(structure, field, BYTE_OFFSET))                  \
		 << __CORE_RELO(structure, field, LSHIFT_U64) >>                                                       \
	 __CORE_RELO(structure, field, RSHIFT_U64))

static __always_inline u64 view_now_us(const struct sock *sk)
{
	return tcp_view(sk)->tcp_mstamp;
}

static __always_inline u64 view_bytes_acked(const struct sock *sk)
{
	return tcp_view(sk)->bytes_acked;
}

static __always_inline u64 view_bytes_sent(const struct sock *sk)
{
	return tcp_view(sk)->bytes_sent - tcp_view(sk)->bytes_retrans;
}

static __always_inline u64 view_bytes_transmitted(const struct sock *sk)
{
	return tcp_view(sk)->bytes_sent;
}

static __always_inline u32 view_bytes_outstanding(const struct sock *sk)
{
	return tcp_view(sk)->snd_nxt - tcp_view(sk)->snd_una;
}

static __always_inline u32 view_bytes_unsent(const struct sock *sk)
{
	return tcp_view(sk)->write_seq - tcp_view(sk)->snd_nxt;
}

static __always_inline u32 view_delivered(const struct sock *sk)
{
	return tcp_view(sk)->delivered;
}

static __always_inline u32 view_lost(const struct sock *sk)
{
	return tcp_view(sk)->lost;
}

static __always_inline u32 view_lost_out(const struct sock *sk)
{
	return tcp_view(sk)->lost_out;
}

static __always_inline u32 view_in_flight(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_view(sk);

	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

static __always_inline bool view_in_order(const struct sock *sk)
{
	return !tcp_view(sk)->sacked_out;
}

static __always_inline u32 view_rate_delivered(const struct sock *sk)
{
	return tcp_view(sk)->rate_delivered;
}

static __always_inline u32 view_rate_interval_us(const struct sock *sk)
{
	return tcp_view(sk)->rate_interval_us;
}

static __always_inline u32 view_srtt_eighths_us(const struct sock *sk)
{
	return tcp_view(sk)->srtt_us;
}

static __always_inline u32 view_min_rtt_us(const struct sock *sk)
{
	u32 minimum = tcp_view(sk)->rtt_min.s[0].v;

	return minimum == ~0U ? 0 : minimum;
}

static __always_inline u32 view_cwnd(const struct sock *sk)
{
	return tcp_view(sk)->snd_cwnd;
}

static __always_inline u32 view_cwnd_clamp(const struct sock *sk)
{
	return tcp_view(sk)->snd_cwnd_clamp;
}

static __always_inline u32 view_prior_cwnd(const struct sock *sk)
{
	return tcp_view(sk)->prior_cwnd;
}

static __always_inline u32 view_ssthresh(const struct sock *sk)
{
	return tcp_view(sk)->snd_ssthresh;
}

static __always_inline u32 view_mss(const struct sock *sk)
{
	return tcp_view(sk)->mss_cache;
}

static __always_inline u64 view_pacing_rate(const struct sock *sk)
{
	return sk->sk_pacing_rate;
}

static __always_inline u64 view_max_pacing_rate(const struct sock *sk)
{
	return sk->sk_max_pacing_rate;
}

static __always_inline bool view_paced(const struct sock *sk)
{
	return sk->sk_pacing_status != SK_PACING_NONE;
}

static __always_inline bool view_stamped_ahead(const struct sock *sk)
{
	return tcp_view(sk)->tcp_wstamp_ns > tcp_view(sk)->tcp_clock_cache;
}

static __always_inline u32 view_gso_max_size(const struct sock *sk)
{
	return sk->sk_gso_max_size;
}

static __always_inline u32 view_limited_by(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_view(sk);

	/* Fields of one bit are 0 or 1. */
	return (tp->app_limited ? ACK_APP_LIMITED : 0) | (u32)READ_BITS(tp, rate_app_limited) * ACK_RATE_APP_LIMITED |
	       (u32)READ_BITS(tp, is_cwnd_limited) * ACK_CWND_LIMITED;
}

static __always_inline u32 view_receiver_clock(const struct sock *sk)
{
	return tcp_view(sk)->rx_opt.rcv_tsval;
}

static __always_inline u32 view_receive_window(const struct sock *sk)
{
	return tcp_view(sk)->snd_wnd;
}

static __always_inline u32 view_state(const struct sock *sk)
{
	const struct inet_connection_sock *icsk = (const struct inet_connection_sock *)sk;

	return READ_BITS(icsk, icsk_ca_state);
}

static __always_inline bool view_in_doubt(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_view(sk);

	return READ_BITS(tp, frto);
}

static __always_inline bool view_ecn(const struct sock *sk)
{
	return tcp_view(sk)->ecn_flags & TCP_ECN_ANY;
}

static __always_inline void set_cwnd(struct sock *sk, u32 segments)
{
	tcp_sk(sk)->snd_cwnd = segments;
}

static __always_inline void set_ssthresh(struct sock *sk, u32 segments)
{
	tcp_sk(sk)->snd_ssthresh = segments;
}

static __always_inline void set_pacing_rate(struct sock *sk, u64 bytes_per_s)
{
	sk->sk_pacing_rate = bytes_per_s;
}

/*
 * fq may say that it paces, on another processor, at any time. With an exchange its mark stays, and no packet waits twice.
 */
static __always_inline bool start_pacing(struct sock *sk)
{
	return __sync_val_compare_and_swap(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED) == SK_PACING_NONE;
}

static __always_inline void stop_pacing(struct sock *sk)
{
	__sync_val_compare_and_swap(&sk->sk_pacing_status, SK_PACING_NEEDED, SK_PACING_NONE);
}

#endif
