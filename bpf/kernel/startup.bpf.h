/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * BBR's STARTUP while its window is ours (bbr.bpf.h), which is written here and not by the shell. Included by
 * congestion_ops.bpf.h.
 */
#ifndef ONRAMP_STARTUP_BPF_H
#define ONRAMP_STARTUP_BPF_H

/* An ACK in the base's start, in which the window is ours. `context`: of cong_control. */
static __always_inline void control_start(struct sock *sk, struct flow *flow, unsigned long long *context)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool left = base_has_left(sk), recovering = base_was_recovering(sk);
	struct shell shell = shell_of(sk, flow, 0, observing);
	struct base_sample base_sample = {};
	u32 before = tp->snd_cwnd, window = before;

	if (left)
		window = base_control_measuring(context, is_filled(sk, shell.limits), before);
	else
		base_control_held(context, &base_sample);
	if (!base_in_startup(sk))
		return;
	recovering |= view_state(sk) == STATE_RECOVERY;
	if (recovering && base_loss_fills(sk)) {
		if (flow->header.flags & FLOW_SLOW_START) {
			left_by(&shell, EXIT_LOSS);
			conclude_late(&shell);
		}
		window = 0;
	}
	if (recovering) {
		/* The base's window, but no growth. */
		tp->snd_cwnd = (u32)min_u64(tp->snd_cwnd, tp->prior_cwnd);
	} else if (window) {
		if (window > before)
			expect_filled(sk, shell.limits);
		tp->snd_cwnd = window;
	}
	if (!window)
		base_full(sk);
	else if (left && view_srtt_eighths_us(sk))
		set_pacing_rate(sk, min_u64(window_rate(sk) * 5 / 4, view_max_pacing_rate(sk)));
	else if (!left && !recovering && !in_recovery(sk))
		grow(sk, tcp_view(sk)->snd_una, base_sample.acked);
}

#endif
