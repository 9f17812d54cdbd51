/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The base: congestion avoidance, loss reaction and undo, done by the kernel's own CUBIC, Reno or BBR.
 *
 * Between CUBIC and Reno the loader chooses before loading, and the verifier prunes the other. For BBR each shell is
 * compiled a second time, with ONRAMP_BBR, because a program holds the module of each kfunc that it names, called or
 * not, and because BBR has another set of operations: bbr.bpf.h.
 */
#ifndef ONRAMP_BASE_BPF_H
#define ONRAMP_BASE_BPF_H

#include "../abi.h"
#include "../shell/base.h"
#include "compat.bpf.h"
#include "view.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* enum base, set by the loader. In a section of its own, which is its address. */
const volatile u32 base SEC(".rodata.base") = BASE_CUBIC;

/* 1: the algorithm is called and recorded, and the base does everything. Set by the loader, likewise. */
const volatile u32 observing SEC(".rodata.observing") = 0;

/* Options of the base, a bit for each of enum after_exit. Set by the loader, likewise; none over BBR. */
const volatile u32 after_exit SEC(".rodata.after_exit") = 0;

extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

#ifdef ONRAMP_BBR
#include "bbr.bpf.h"
#else

/* Whether the base has cong_control, which the kernel calls instead of cong_avoid. */
#define BASE_CONTROLS 0

extern void cubictcp_init(struct sock *sk) KFUNC_OF_SOME;
extern u32 cubictcp_recalc_ssthresh(struct sock *sk) KFUNC_OF_SOME;
extern void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked) KFUNC_OF_SOME;
extern void cubictcp_state(struct sock *sk, u8 new_state) KFUNC_OF_SOME;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) KFUNC_OF_SOME;
extern void cubictcp_cwnd_event_tx_start(struct sock *sk) KFUNC_OF_SOME;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) KFUNC_OF_SOME;
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;

static __always_inline void base_init(struct sock *sk)
{
	if (base == BASE_CUBIC)
		cubictcp_init(sk);
}

static __always_inline u32 base_ssthresh(struct sock *sk)
{
	return base == BASE_CUBIC ? cubictcp_recalc_ssthresh(sk) : tcp_reno_ssthresh(sk);
}

static __always_inline void base_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	if (base == BASE_CUBIC)
		cubictcp_cong_avoid(sk, ack, acked);
	else
		tcp_reno_cong_avoid(sk, ack, acked);
}

static __always_inline void base_state(struct sock *sk, u8 new_state)
{
	if (base == BASE_CUBIC)
		cubictcp_state(sk, new_state);
}

/* Every event, CA_EVENT_TX_START among them where the kernel has no operation for that. */
static __always_inline void base_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (base == BASE_CUBIC && !has_tx_start_operation())
		cubictcp_cwnd_event(sk, event);
}

static __always_inline void base_tx_start(struct sock *sk)
{
	if (base == BASE_CUBIC && has_tx_start_operation())
		cubictcp_cwnd_event_tx_start(sk);
}

static __always_inline struct bictcp *cubic_of(struct sock *sk)
{
	return (struct bictcp *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

/*
 * Whether CUBIC may take this sample for its least RTT: the only thing that it does with an ACK, HyStart apart. An ACK without a
 * sample has the largest number, and no least RTT yet is a larger one.
 */
static __always_inline bool cubic_measures(struct sock *sk, const struct ack_sample *sample)
{
	return cubic_of(sk)->delay_min - 1 >= (u32)sample->rtt_us;
}

/* The base with its own HyStart, which is for slow start, where no algorithm would end that. */
static __always_inline void base_acked_alone(struct sock *sk, const struct ack_sample *sample)
{
	if (base == BASE_CUBIC && (is_below_threshold(sk) || cubic_measures(sk, sample)))
		cubictcp_acked(sk, sample);
}

/* CUBIC's own HyStart would exit slow start by rules of its own. It does not look at this ACK if `found` is set. */
static __always_inline void base_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct bictcp *cubic = cubic_of(sk);
	u8 found;

	if (base != BASE_CUBIC || !cubic_measures(sk, sample))
		return;
	found = cubic->found;
	cubic->found = 1;
	cubictcp_acked(sk, sample);
	cubic->found = found;
}

/* In recovery the window may lie below the threshold without being in slow start. */
static __always_inline bool base_in_slow_start(struct sock *sk)
{
	return starts_below_threshold(sk);
}

/* The connection is past its start: a threshold that its last control never set must not start it anew. */
static __always_inline void base_past_start(struct sock *sk)
{
	end_start_by_threshold(sk);
}

/* The threshold says when slow start begins anew, and when it is over. */
static __always_inline void base_start_again(struct sock *sk)
{
}

static __always_inline void base_left(struct sock *sk)
{
}

static __always_inline u32 base_options(const struct sock *sk)
{
	return after_exit;
}

/* CUBIC takes it for the window before its last reduction. */
static __always_inline void base_set_plateau(struct sock *sk, u32 window)
{
	if (base == BASE_CUBIC)
		cubic_of(sk)->last_max_cwnd = window;
}

static __always_inline u32 base_undo_cwnd(struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

/* The host's setting is right. */
static __always_inline u32 base_min_tso_segs(struct sock *sk)
{
	return sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_min_tso_segs;
}

#endif

static __always_inline bool base_controls(const struct sock *sk)
{
	return BASE_CONTROLS;
}

#endif
