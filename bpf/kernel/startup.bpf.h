/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * BBR's STARTUP while its window is ours (bbr.bpf.h, shell/startup.h). Included by congestion_ops.bpf.h.
 */
#ifndef ONRAMP_STARTUP_BPF_H
#define ONRAMP_STARTUP_BPF_H

/* An ACK in the base's start, in which the window is ours. `context`: of cong_control. */
static __always_inline void control_start(struct sock *sk, struct flow *flow, unsigned long long *context)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct shell shell = shell_of(sk, flow, 0, observing);
	struct base_sample base_sample = {};
	struct startup_step step = {
		.before = tp->snd_cwnd,
		.window = tp->snd_cwnd,
		.left = base_has_left(sk),
		.recovering = base_was_recovering(sk),
	};
	bool grows;

	if (step.left)
		step.window = base_control_measuring(context, is_filled(sk, shell.limits), step.before);
	else
		base_control_held(context, &base_sample);
	if (!base_in_startup(sk))
		return;
	step.recovering |= view_state(sk) == STATE_RECOVERY;
	step.lost = tp->undo_retrans;
	grows = startup_goes_on(&shell, &step);
	if (step.recovering)
		conclude_late(&shell);
	if (grows)
		grow(sk, tcp_view(sk)->snd_una, base_sample.acked);
}

#endif
