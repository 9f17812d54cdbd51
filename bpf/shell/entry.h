/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The entries of the shell: what each operation of a congestion control does, in this order. The kernel's operations
 * (kernel/congestion_ops.bpf.h) and the host's senders (host/shell.h) call them. An entry in which the algorithm or the base
 * has its turn is in two parts, one before that and one after; between them the caller calls it.
 */
#ifndef ONRAMP_SHELL_ENTRY_H
#define ONRAMP_SHELL_ENTRY_H

#include "ack.h"
#include "loss.h"
#include "probe.h"
#include "report.h"

/* Whether the exit record is complete, has its name, and is not yet reported, which it is from here on. */
static __always_inline bool exit_is_due(struct flow_header *flow)
{
	if ((flow->flags & (FLOW_EXIT_UNREPORTED | FLOW_UNNAMED)) != FLOW_EXIT_UNREPORTED)
		return false;
	flow->flags &= ~FLOW_EXIT_UNREPORTED;
	return true;
}

/* Reports the exit record once it is. */
static __always_inline void conclude(const struct shell *shell)
{
	if (exit_is_due(shell->flow))
		report_exit(shell);
}

/* An ACK on its way. Each is 0 or 1. */
struct ack_step {
	u32 starting; /* it is in slow start */
	u32 called;   /* the algorithm is called */
	u32 begins;   /* slow start begins: the algorithm is restarted, before that */
};

/* pkts_acked, before the flow is looked up. By reference: structures passed by value are merged into wider registers. */
static __always_inline void ack_arrives(struct sock *sk, u32 traits, bool observing, struct ack_step *step)
{
	step->starting = base_in_slow_start(sk);
	step->called = is_called(sk, step->starting, traits, observing);
	step->begins = 0;
}

/* Whether a flow that has no state gets it now; else the base runs alone. */
static __always_inline bool ack_needs_state(const struct sock *sk, const struct ack_step *step)
{
	return step->called && needs_state(sk);
}

/* The fields of an ACK that the algorithm does not read, for what is done seldom. */
static __noinline void describe_rest(const struct sock *sk, struct ack *ack)
{
	describe(sk, ack->acked, ack->rtt_us, ack);
}

/*
 * Slow start begins with this ACK. True: a loss has interrupted a drain, which is over. By itself, since it is seldom: it
 * would take the registers of what is done with every ACK.
 */
static __noinline bool ack_begins(struct sock *sk, struct flow_header *flow, struct flow_telemetry *telemetry,
				  const struct ack *ack)
{
	const struct shell shell = { .sk = sk, .flow = flow, .telemetry = telemetry };

	begin_slow_start(sk, flow, ack->rtt_us);
	report_restart(&shell);
	return flow->flags & FLOW_EXITING;
}

/* Whether growth below the threshold is a probe's, which is no slow start of the algorithm's. By itself for the same reason. */
static __noinline bool ack_probes(const struct sock *sk, const struct limits *limits)
{
	return is_probing(sk, limits);
}

/* Such an ACK: an algorithm that is always called goes on outside of slow start, and any other is not called. */
static __always_inline void ack_is_a_probes(const struct shell *shell, struct ack_step *step)
{
	step->called = is_called(shell->sk, false, shell->traits, shell->observing);
	if (shell->traits & TRAIT_ALWAYS)
		step->starting = 0;
}

/* What the algorithm sees, and whether it is called with it. */
static __always_inline void ack_before(const struct shell *shell, u32 acked, s32 rtt_us, struct ack_step *step,
				       struct ack_payload *payload)
{
	struct flow_header *flow = shell->flow;

	describe_fields(shell->sk, acked, rtt_us, shell->reads, &payload->ack);
	/* What has been written is there to be read: no register is to keep it as well. */
	asm volatile("" : : "r"(&payload->ack) : "memory");
	if (shell->reads != READS_ALL && (shell->telemetry || shell->observing))
		describe_rest(shell->sk, &payload->ack);
	/* Only the rest: what has just been described would be cleared first. */
	payload->verdict = (struct verdict){ 0 };
	payload->called = payload->flags = payload->generation = payload->jump = 0;
	payload->start_phase = payload->start_end = 0;
	if (!step->starting)
		return;
	if (!(flow->flags & FLOW_SLOW_START)) {
		if (ack_probes(shell->sk, shell->limits)) {
			ack_is_a_probes(shell, step);
		} else {
			step->begins = 1;
			if (ack_begins(shell->sk, flow, shell->telemetry, &payload->ack) && !shell->observing) {
				end_drain(shell->sk, flow, &payload->verdict);
				step->called = 0;
			}
		}
	}
	if (shell->observing)
		step->called = shell->kept && observed_before(flow, &shell->kept->observed, &payload->ack);
}

/* What its verdict does, or the shell's own where a drain is over. */
static __always_inline void ack_after(const struct shell *shell, const struct ack_step *step,
				      struct ack_payload *payload)
{
	const struct verdict *verdict = &payload->verdict;
	struct flow_header *flow = shell->flow;

	if (shell->observing) {
		if (step->called && shell->kept)
			observed_after(flow, &shell->kept->observed, &payload->ack, verdict);
	} else if (step->starting && (payload->called || !step->called)) {
		if (shell->reads != READS_ALL && verdict->outcome == OUTCOME_EXIT)
			describe_rest(shell->sk, &payload->ack);
		apply_verdict(shell->sk, flow, shell->limits, &payload->ack, verdict, shell->traits);
	} else if (payload->called) {
		apply_window(shell->sk, flow, shell->limits, verdict, shell->traits);
	}
	report_ack(shell, payload);
	conclude(shell);
}

/*
 * cong_avoid: whether the last verdict limits by how many segments the base may grow the window; at 0 it is not called.
 * `limits`: null where there are none.
 */
static __always_inline bool growth_before(const struct limits *limits, u32 *acked)
{
	if (!limits || !(limits->flags & LIMITS_GROWTH))
		return false;
	*acked = growth_allowed(limits, *acked);
	return true;
}

/* `limited`: by growth_before. Whether the window has come to the threshold: where the flow has state, it exits slow start. */
static __always_inline bool growth_after(struct sock *sk, const struct limits *limits, struct growth_step step,
					 bool limited)
{
	if (limited)
		limit_growth(sk, limits, step);
	return growth_reached_threshold(sk, step);
}

/* `conclude` follows. */
static __always_inline void reached_threshold(const struct shell *shell)
{
	struct ack ack;

	if (!(shell->flow->flags & FLOW_SLOW_START))
		return;
	describe(shell->sk, 0, NO_RTT, &ack);
	leave_at_threshold(shell->sk, shell->flow, shell->limits, &ack);
}

/* A reduction on its way. Each is 0 or 1. */
struct loss_step {
	u32 ends;   /* it ends slow start */
	u32 called; /* the algorithm is called, for the threshold */
};

/* ssthresh; the base has answered. What its options make of that is payload->base_ssthresh. */
static __always_inline struct loss_step loss_before(const struct shell *shell, u32 base_ssthresh,
						    struct loss_payload *payload)
{
	bool starting = shell->flow->flags & FLOW_SLOW_START;

	base_ssthresh = after_loss(shell->sk, shell->limits, base_ssthresh);
	end_probe(shell->sk, shell->limits);
	payload->base_ssthresh = payload->ssthresh = base_ssthresh;
	payload->called = payload->unused = 0;
	describe(shell->sk, 0, NO_RTT, &payload->ack);
	if (!starting)
		reduced_again(shell->flow);
	return (struct loss_step){ .ends = starting && !base_controls(shell->sk),
				   .called = starting && !base_controls(shell->sk) && !shell->observing };
}

/* The threshold is payload->ssthresh. */
static __always_inline void loss_after(const struct shell *shell, struct loss_step step,
				       const struct loss_payload *payload)
{
	if (step.ends) {
		record_loss(shell->flow, &payload->ack);
		finish_exit(shell->sk, shell->flow, shell->limits, payload->ssthresh);
	}
	report_loss(shell, payload);
}

/* An event has ended slow start; the kernel has kept the window before. `conclude` follows. */
static __always_inline void left_by(const struct shell *shell, u32 reason)
{
	struct ack ack;

	describe(shell->sk, 0, NO_RTT, &ack);
	leave_reduced(shell->sk, shell->flow, shell->limits, &ack, reason);
}

/* set_state, before the socket has the new one. */
static __always_inline void state_changes(const struct shell *shell, u32 new_state)
{
	u32 old_state = view_state(shell->sk);
	struct flow_header *flow = shell->flow;

	name_reduction(shell->sk, flow, new_state);
	if (base_controls(shell->sk) && flow->flags & FLOW_SLOW_START && !shell->observing) {
		if (new_state == STATE_CWR)
			left_by(shell, mark_reason(shell->sk));
		if (new_state == STATE_LOSS) {
			left_by(shell, EXIT_TIMEOUT);
			base_start_again(shell->sk);
		}
	}
	if (new_state == STATE_LOSS)
		slow_start_ends(flow);
	report_state(shell, old_state, new_state);
	conclude(shell);
}

/* undo_cwnd; the base would restore `window`. payload->restored is the window to restore; report_undo follows. */
static __always_inline void loss_was_spurious(const struct shell *shell, u32 window, struct undo_payload *payload)
{
	bool recorded = shell->flow->exit.reason != EXIT_NONE;

	*payload = (struct undo_payload){ .cwnd = view_cwnd(shell->sk) };
	if (undo(shell->sk, shell->flow, &window))
		base_start_again(shell->sk);
	payload->exit_undone = recorded && shell->flow->exit.reason == EXIT_NONE;
	payload->restored = window;
}

#endif
