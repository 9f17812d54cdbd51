/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The kernel's BBR as the base (base.bpf.h). Its cong_control, bbr_main, is called with every ACK and does all that the
 * kernel leaves to a control with that operation: recovery, idle restart, application limits, PROBE_RTT. What is ours
 * is when STARTUP ends, and until then the window:
 *
 *	STARTUP, ours: the algorithm's window ──exit──► STARTUP, left: measuring ──► DRAIN ──► PROBE_BW
 *	     ▲                                               │             (the kernel's from here on)
 *	     └──────────────────timeout──────────────────────┘
 *
 *   - Until the exit BBR's own judgment that its pipe is full is put off with each ACK.
 *   - At the exit its bandwidth filter holds little more than half of the rate: samples span a round trip, in which the
 *     window doubled. So the window is filled, paced by 5/4 of it per RTT, and held for the round in which it is
 *     delivered. If that round has raised the rate the exit may have been early, and larger rounds follow
 *     (shell/startup.h); after three of them, of which only the first two may still be of the window's former growth, with
 *     as much as BBR. The first round that has not finds the pipe full, with a rate and an RTT that BBR has measured.
 *     Rounds in which the application sets the rate do not count.
 *   - `full_bw_cnt` and `full_bw` show that STARTUP has been left, and the rate before the current round, its two
 *     lowest bits how many rounds have raised it; BBR, which would act on them, does not see them.
 *   - BBR does not end STARTUP by loss. Neither does ours by losses that a path has at random: recovery is BBR's, its
 *     window no larger than before the loss, and the algorithm goes on after it.
 *
 * struct bbr is read and written by the names of its fields (CO-RE). The loader refuses kernels whose BBR has others.
 */
#ifndef ONRAMP_BBR_BPF_H
#define ONRAMP_BBR_BPF_H

#include "../shell/startup.h"

#define BASE_CONTROLS 1

/* BBR_STARTUP of net/ipv4/tcp_bbr.c */
#define BBR_STARTUP 0
/* full_bw_cnt where STARTUP has been left. */
#define BBR_LEFT 2
/* Of full_bw then, how many rounds have raised the rate. */
#define BBR_RAISED_MASK STARTUP_RAISED_MAX
/* The largest full_bw that times 5/4 fits: no rate is a quarter above it. */
#define BBR_MOST (~0U / 5 * 4)

extern void bbr_init(struct sock *sk) KFUNC_OF_SOME;
extern u32 bbr_ssthresh(struct sock *sk) KFUNC_OF_SOME;
extern void bbr_set_state(struct sock *sk, u8 new_state) KFUNC_OF_SOME;
extern void bbr_cwnd_event(struct sock *sk, enum tcp_ca_event event) KFUNC_OF_SOME;
extern void bbr_cwnd_event_tx_start(struct sock *sk) KFUNC_OF_SOME;
extern u32 bbr_undo_cwnd(struct sock *sk) KFUNC_OF_SOME;
extern u32 bbr_min_tso_segs(struct sock *sk) KFUNC_OF_SOME;
extern u32 bbr_sndbuf_expand(struct sock *sk) KFUNC_OF_SOME;
extern void bbr_main(struct sock *sk, u32 ack, int flag, const struct rate_sample *sample) KFUNC_OF_SOME;
extern void bbr_main___before_6_10(struct sock *sk, const struct rate_sample *sample) KFUNC_OF_SOME;

static __always_inline struct bbr *bbr_of(struct sock *sk)
{
	return (struct bbr *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

/* Whether BBR has not found its pipe full yet; not while it looks for the minimum RTT. */
static __always_inline bool base_in_startup(struct sock *sk)
{
	struct bbr *bbr = bbr_of(sk);

	return BPF_CORE_READ_BITFIELD(bbr, mode) == BBR_STARTUP && !BPF_CORE_READ_BITFIELD(bbr, full_bw_reached);
}

/* Whether BBR has found its pipe full. */
static __always_inline bool base_is_full(struct sock *sk)
{
	struct bbr *bbr = bbr_of(sk);

	return BPF_CORE_READ_BITFIELD(bbr, full_bw_reached);
}

/* Whether BBR has seen a loss that is being recovered, at the ACK before. */
static __always_inline bool base_was_recovering(struct sock *sk)
{
	struct bbr *bbr = bbr_of(sk);

	return BPF_CORE_READ_BITFIELD(bbr, prev_ca_state) == STATE_RECOVERY;
}

/* Whether what is left of STARTUP is to measure. */
static __always_inline bool base_has_left(struct sock *sk)
{
	struct bbr *bbr = bbr_of(sk);

	return BPF_CORE_READ_BITFIELD(bbr, full_bw_cnt) == BBR_LEFT && bbr->full_bw;
}

static __always_inline bool base_in_slow_start(struct sock *sk)
{
	return base_in_startup(sk) && (observing || !base_has_left(sk)) && may_start(sk);
}

/* STARTUP is left, and goes on to measure. */
static __always_inline void leave_startup(struct sock *sk)
{
	struct bbr *bbr = bbr_of(sk);

	if (!base_in_startup(sk))
		return;
	bbr->full_bw = (bbr->bw.s[0].v & ~BBR_RAISED_MASK) + BBR_RAISED_MASK + 1;
	BPF_CORE_WRITE_BITFIELD(bbr, full_bw_cnt, BBR_LEFT);
}

/* BBR's STARTUP begins anew, or goes on, and is ours. */
static __always_inline void base_start_again(struct sock *sk)
{
	struct bbr *bbr = bbr_of(sk);

	bbr->full_bw = 0;
	BPF_CORE_WRITE_BITFIELD(bbr, full_bw_reached, 0);
	BPF_CORE_WRITE_BITFIELD(bbr, mode, BBR_STARTUP);
}

/* Where the algorithm only observes, BBR decides by itself. */
static __always_inline void base_left(struct sock *sk)
{
	if (!observing)
		leave_startup(sk);
}

static __always_inline void base_past_start(struct sock *sk)
{
	if (tcp_sk(sk)->snd_cwnd > 2 * INITIAL_WINDOW)
		leave_startup(sk);
}

/* BBR reduces by no threshold, and has a measure of its own for growth. */
static __always_inline u32 base_options(const struct sock *sk)
{
	return 0;
}

static __always_inline void base_set_plateau(struct sock *sk, u32 window)
{
}

static __always_inline void base_init(struct sock *sk)
{
	bbr_init(sk);
}

/* Saves the window. What it answers is the threshold there is. */
static __always_inline u32 base_ssthresh(struct sock *sk)
{
	return bbr_ssthresh(sk);
}

/*
 * The window doubles. BBR knows no threshold: one that the window has reached is of an exit that BBR has undone, since it
 * decides by itself while it looks for the minimum RTT, and a rate that has risen by a quarter is none of a full pipe.
 */
static __always_inline void base_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tp->snd_cwnd >= tp->snd_ssthresh)
		tp->snd_ssthresh = NO_THRESHOLD;
	tcp_reno_cong_avoid(sk, ack, acked);
}

static __always_inline void base_state(struct sock *sk, u8 new_state)
{
	bbr_set_state(sk, new_state);
}

static __always_inline void base_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (!has_tx_start_operation())
		bbr_cwnd_event(sk, event);
}

static __always_inline void base_tx_start(struct sock *sk)
{
	if (has_tx_start_operation())
		bbr_cwnd_event_tx_start(sk);
}

/* BBR looks at ACKs in cong_control only. */
static __always_inline void base_acked(struct sock *sk, const struct ack_sample *sample)
{
}

static __always_inline void base_acked_alone(struct sock *sk, const struct ack_sample *sample)
{
}

/* BBR restores the window itself when recovery ends, but not after a timeout in what was ours. */
static __always_inline u32 base_undo_cwnd(struct sock *sk)
{
	bool ours = base_in_startup(sk), left = base_has_left(sk);
	u32 window = bbr_undo_cwnd(sk);

	if (left)
		leave_startup(sk);
	return ours ? tcp_reno_undo_cwnd(sk) : window;
}

static __always_inline u32 base_min_tso_segs(struct sock *sk)
{
	return bbr_min_tso_segs(sk);
}

static __always_inline u32 base_sndbuf_expand(struct sock *sk)
{
	return bbr_sndbuf_expand(sk);
}

/* The pipe is full, and its rate has been measured: a queue has overflowed. */
static __always_inline void base_full(struct sock *sk)
{
	struct bbr *bbr = bbr_of(sk);

	BPF_CORE_WRITE_BITFIELD(bbr, full_bw_reached, 1);
}

/* What an ACK has shown. */
struct base_sample {
	u32 acked;	  /* segments delivered */
	bool app_limited; /* the application set the rate */
};

/* BBR's turn. `context` has the arguments of cong_control. */
static __always_inline void base_control(unsigned long long *context, struct base_sample *base_sample)
{
	struct sock *sk = (struct sock *)context[0];
	const struct rate_sample *sample;

	if (has_four_control_arguments()) {
		sample = (const struct rate_sample *)context[3];
		base_sample->acked = sample->acked_sacked;
		base_sample->app_limited = sample->is_app_limited;
		bbr_main(sk, (u32)context[1], (int)context[2], sample);
	} else {
		sample = (const struct rate_sample *)context[1];
		base_sample->acked = sample->acked_sacked;
		base_sample->app_limited = sample->is_app_limited;
		bbr_main___before_6_10(sk, sample);
	}
}

/* BBR's turn, its judgment that the pipe is full put off. */
static __always_inline void base_control_held(unsigned long long *context, struct base_sample *base_sample)
{
	struct sock *sk = (struct sock *)context[0];
	struct bbr *bbr = bbr_of(sk);

	BPF_CORE_WRITE_BITFIELD(bbr, full_bw_cnt, 0);
	base_control(context, base_sample);
}

/*
 * BBR's turn after the exit; `filled`: the window has been, else the round begins now. Returns the window of the next
 * round, the pipe being full if that is none.
 */
static __always_inline u32 base_control_measuring(unsigned long long *context, bool filled, u32 window)
{
	struct sock *sk = (struct sock *)context[0];
	struct base_sample base_sample = {};
	struct bbr *bbr = bbr_of(sk);
	u32 before = bbr->full_bw, rate, raised;

	if (!filled)
		bbr->next_rtt_delivered = tcp_sk(sk)->delivered;
	bbr->full_bw = BBR_MOST;
	base_control_held(context, &base_sample);
	rate = bbr->bw.s[0].v;
	bbr->full_bw = before;
	BPF_CORE_WRITE_BITFIELD(bbr, full_bw_cnt, BBR_LEFT);
	if (!filled || !BPF_CORE_READ_BITFIELD(bbr, round_start) || base_sample.app_limited)
		return window;
	if (!startup_raised(before, rate))
		return 0;
	raised = (u32)min_u64((before & BBR_RAISED_MASK) + 1, BBR_RAISED_MASK);
	bbr->full_bw = (rate & ~BBR_RAISED_MASK) + raised;
	return startup_grown(window, raised, tcp_sk(sk)->snd_cwnd_clamp);
}

#endif
