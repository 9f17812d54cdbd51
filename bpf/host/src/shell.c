/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The shell for Rust (shell.rs). */
#include "../shell.h"

void onramp_shell_describe(const struct sock *sk, u32 acked, s32 rtt_us, struct ack *ack)
{
	describe(sk, acked, rtt_us, ack);
}

u32 onramp_shell_before_ack(struct shell_flow *flow, struct sock *sk, u32 acked, s32 rtt_us, struct ack *ack,
			    struct verdict *verdict)
{
	return shell_before_ack(flow, sk, acked, rtt_us, ack, verdict);
}

void onramp_shell_after_ack(struct shell_flow *flow, struct sock *sk, u32 needs, const struct ack *ack,
			    const struct verdict *verdict)
{
	shell_after_ack(flow, sk, needs, ack, verdict);
}

u32 onramp_shell_before_growth(struct shell_flow *flow, const struct sock *sk, u32 acked)
{
	return shell_before_growth(flow, sk, acked);
}

void onramp_shell_after_growth(struct shell_flow *flow, struct sock *sk)
{
	shell_after_growth(flow, sk);
}

u32 onramp_shell_before_loss(struct shell_flow *flow, const struct sock *sk, struct ack *ack)
{
	return shell_before_loss(flow, sk, ack);
}

void onramp_shell_after_loss(struct shell_flow *flow, struct sock *sk, const struct ack *ack, u32 ssthresh)
{
	shell_after_loss(flow, sk, ack, ssthresh);
}

void onramp_shell_state(struct shell_flow *flow, const struct sock *sk, u32 new_state)
{
	shell_state(flow, sk, new_state);
}

void onramp_shell_idle(struct shell_flow *flow)
{
	shell_idle(flow);
}

u32 onramp_shell_undo(struct shell_flow *flow, const struct sock *sk, u32 window)
{
	return shell_undo(flow, sk, window);
}

void onramp_shell_pace(struct shell_flow *flow, struct sock *sk)
{
	shell_pace(flow, sk);
}
