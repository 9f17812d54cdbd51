/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The shell's accessors (shell/view.h) over a plain structure, which a simulated sender fills. */
#ifndef ONRAMP_HOST_VIEW_H
#define ONRAMP_HOST_VIEW_H

#include "../shell/base.h"
#include "../shell/report.h"

/* What is known of a base's slow start besides the threshold, and, of a base that controls, what the shell makes of it. */
enum startup {
	STARTUP_NONE,  /* nothing; a base that controls is past it */
	STARTUP_ON,    /* it is in slow start */
	STARTUP_LEFT,  /* written by the shell: the exit has been */
	STARTUP_AGAIN, /* ... it begins anew, or goes on */
	STARTUP_FULL,  /* ... the pipe is full */
};

/*
 * A sender as the shell sees it; shell/view.h has the meaning of each field. `plateau` and the last four are written by the
 * shell, and `startup` where the base controls.
 */
struct sock {
	u64 now_us;
	u64 bytes_acked;
	u64 bytes_sent;	       /* each once */
	u64 bytes_transmitted; /* with retransmissions */
	u64 max_pacing_rate;   /* bytes per second; all ones: unlimited */
	u32 bytes_outstanding;
	u32 bytes_unsent;
	u32 delivered; /* segments */
	u32 in_flight; /* segments */
	u32 srtt_eighths_us;
	u32 min_rtt_us;	  /* 0: none yet */
	u32 cwnd_clamp;	  /* segments */
	u32 prior_cwnd;	  /* segments */
	u32 mss;	  /* bytes */
	u32 gso_max_size; /* bytes */
	u32 limited_by;	  /* enum ack_flag */
	u32 receiver_clock;
	u32 receive_window; /* bytes */
	u32 rate_delivered; /* segments, of the newest rate sample */
	u32 rate_interval_us;
	u32 startup;	   /* enum startup */
	u32 options;	   /* of the base, a bit for each of enum after_exit */
	u32 plateau;	   /* segments; written by the shell, 0: none */
	u32 in_doubt;	   /* 1: in STATE_LOSS, which may prove spurious */
	u32 lost;	   /* segments, each as often as it was */
	u32 lost_out;	   /* segments that have not arrived since */
	u32 controls;	   /* 1: the base sets the window itself, with every ACK, as BBR does */
	u32 state;	   /* enum congestion_state */
	u32 ecn;	   /* 1: negotiated */
	u32 stamped_ahead; /* 1: paced packets still have to leave */
	u32 paced;	   /* 1: something paces */
	u32 cwnd;	   /* segments */
	u32 ssthresh;	   /* segments */
	u64 pacing_rate;   /* bytes per second */
};

#define VIEW(type, name)                                                                                               \
	static __always_inline type view_##name(const struct sock *sk)                                                 \
	{                                                                                                              \
		return sk->name;                                                                                       \
	}
VIEW(u64, now_us)
VIEW(u64, bytes_acked)
VIEW(u64, bytes_sent)
VIEW(u64, bytes_transmitted)
VIEW(u64, max_pacing_rate)
VIEW(u64, pacing_rate)
VIEW(u32, bytes_outstanding)
VIEW(u32, bytes_unsent)
VIEW(u32, delivered)
VIEW(u32, lost)
VIEW(u32, lost_out)
VIEW(u32, in_flight)
VIEW(u32, rate_delivered)
VIEW(u32, rate_interval_us)
VIEW(u32, srtt_eighths_us)
VIEW(u32, min_rtt_us)
VIEW(u32, cwnd)
VIEW(u32, cwnd_clamp)
VIEW(u32, prior_cwnd)
VIEW(u32, ssthresh)
VIEW(u32, mss)
VIEW(u32, gso_max_size)
VIEW(u32, limited_by)
VIEW(u32, receiver_clock)
VIEW(u32, receive_window)
VIEW(u32, state)
VIEW(bool, in_doubt)
VIEW(bool, ecn)
VIEW(bool, paced)
VIEW(bool, stamped_ahead)
#undef VIEW

static __always_inline void set_cwnd(struct sock *sk, u32 segments)
{
	sk->cwnd = segments;
}

static __always_inline void set_ssthresh(struct sock *sk, u32 segments)
{
	sk->ssthresh = segments;
}

static __always_inline void set_pacing_rate(struct sock *sk, u64 bytes_per_s)
{
	sk->pacing_rate = bytes_per_s;
}

static __always_inline bool start_pacing(struct sock *sk)
{
	sk->paced = 1;
	return true;
}

static __always_inline void stop_pacing(struct sock *sk)
{
	sk->paced = 0;
}

static __always_inline bool view_in_order(const struct sock *sk)
{
	return (u64)sk->in_flight * sk->mss >= sk->bytes_outstanding;
}

static __always_inline bool base_controls(const struct sock *sk)
{
	return sk->controls;
}

/* A base that does not control ends slow start at the threshold. */
static __always_inline bool base_in_slow_start(struct sock *sk)
{
	if (sk->controls)
		return sk->startup == STARTUP_ON && may_start(sk);
	return sk->startup || starts_below_threshold(sk);
}

static __always_inline void base_start_again(struct sock *sk)
{
	if (sk->controls)
		sk->startup = STARTUP_AGAIN;
}

static __always_inline void base_left(struct sock *sk)
{
	if (sk->controls)
		sk->startup = STARTUP_LEFT;
}

static __always_inline void base_full(struct sock *sk)
{
	sk->startup = STARTUP_FULL;
}

static __always_inline u32 base_options(const struct sock *sk)
{
	return sk->options;
}

static __always_inline void base_set_plateau(struct sock *sk, u32 window)
{
	sk->plateau = window;
}

static __always_inline void base_past_start(struct sock *sk)
{
	end_start_by_threshold(sk);
}

/* There are no consumers. */
static __always_inline void report_restart(const struct shell *shell)
{
	(void)shell;
}

static __always_inline void report_ack(const struct shell *shell, struct ack_payload *payload)
{
	(void)shell;
	(void)payload;
}

static __always_inline void report_loss(const struct shell *shell, const struct loss_payload *payload)
{
	(void)shell;
	(void)payload;
}

static __always_inline void report_state(const struct shell *shell, u32 from, u32 to)
{
	(void)shell;
	(void)from;
	(void)to;
}

static __always_inline void report_undo(const struct shell *shell, struct undo_payload *payload)
{
	(void)shell;
	(void)payload;
}

static __always_inline void report_exit(const struct shell *shell)
{
	(void)shell;
}

#endif
