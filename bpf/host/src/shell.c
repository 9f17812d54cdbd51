/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The entries of the shell for Rust (shell.rs). */
#include "../shell.h"

void onramp_shell_describe(const struct sock *sk, u32 acked, s32 rtt_us, struct ack *ack)
{
	describe(sk, acked, rtt_us, ack);
}

u32 onramp_shell_in_slow_start(const struct sock *sk)
{
	return starts_below_threshold(sk);
}

void onramp_path_recall(const struct path *path, u64 now_ns, u64 lifetime_ns, u32 policies, struct start *start)
{
	if (!path_is_known(path, now_ns, lifetime_ns))
		return;
	path_recall(path, now_ns, lifetime_ns, policies, start);
}

void onramp_start_remembers(struct start *start, u64 rate, u32 rtt_us, u32 policies)
{
	start_remembers(start, rate, rtt_us, policies);
}

u32 onramp_path_learn(const struct shell_flow *flow, const struct sock *sk, u32 ends, struct path *path, u64 now_ns,
		      u64 lifetime_ns)
{
	struct path_sample sample;

	sample_path(sk, &flow->header, ends, &sample);
	return path_learn(path, &sample, now_ns, lifetime_ns);
}

void onramp_path_judge(struct path *path, u32 end)
{
	path_judge(path, end);
}

u64 onramp_path_claim_lasts_ns(const struct path *path, u32 begins)
{
	return claim_lasts_ns(path, begins);
}

u32 onramp_path_is_claimed(const struct path *path, u64 now_ns)
{
	return path_is_claimed(path, now_ns);
}

void onramp_shell_begin(struct shell_flow *flow, struct sock *sk)
{
	start_begins(sk, &flow->start, &flow->limits);
}

static bool has_faster(const struct shell_flow *flow, enum start_policy policy)
{
	return flow->header.flags & FLOW_FASTER && flow->faster == policy;
}

/* The flow gets its state. */
static void begin_start(struct shell_flow *flow, const struct sock *sk)
{
	start_goes_on(&flow->header, &flow->start);
	if (flow->faster && !flow->observing && !(flow->header.flags & FLOW_STARTS))
		faster_begins(sk, &flow->header);
}

/* Whether it is the shell's: not in an initial window, and not where the base works alone. */
u32 onramp_shell_ack_before(struct shell_flow *flow, struct sock *sk, u32 acked, s32 rtt_us, struct ack_step *step,
			    struct ack_payload *payload)
{
	const struct shell shell = shell_of(flow, sk);

	if (has_faster(flow, POLICY_FAST) && view_state(sk) == STATE_RECOVERY)
		fast_recovers(sk, &flow->header, &flow->fast);
	if (flow->has_state && probe_is_due(sk, &flow->limits))
		begin_probe(sk, &flow->limits);
	ack_arrives(sk, flow->traits, flow->observing, step);
	if (!step->called || !(flow->has_state || ack_needs_state(sk, step)))
		return 0;
	if (!flow->has_state)
		begin_start(flow, sk);
	flow->has_state = 1;
	ack_before(&shell, acked, rtt_us, step, payload);
	return 1;
}

void onramp_shell_ack_after(struct shell_flow *flow, struct sock *sk, const struct ack_step *step,
			    struct ack_payload *payload)
{
	const struct shell shell = shell_of(flow, sk);

	ack_after(&shell, step, payload);
	if (flow->header.flags & FLOW_STARTS)
		start_acked(sk, &flow->header, &flow->limits, &flow->start, flow->traits, payload->ack.acked,
			    payload->ack.rtt_us);
	if (has_faster(flow, POLICY_FAST))
		fast_acked(sk, &flow->header, &flow->limits, &flow->fast, flow->traits, payload->ack.acked,
			   payload->ack.rtt_us);
	else if (has_faster(flow, POLICY_SUSS))
		suss_acked(sk, &flow->header, &flow->limits, &flow->suss, flow->traits, payload->ack.acked,
			   payload->ack.rtt_us);
}

u32 onramp_shell_growth_before(struct shell_flow *flow, const struct sock *sk, u32 acked)
{
	flow->growth = growth_begins(sk);
	flow->growth_limited = growth_has_limits(flow->growth, flow->traits) && growth_before(&flow->limits, &acked);
	return acked;
}

void onramp_shell_growth_after(struct shell_flow *flow, struct sock *sk)
{
	const struct shell shell = shell_of(flow, sk);

	if (growth_after(sk, &flow->limits, flow->growth, flow->growth_limited) && flow->has_state)
		reached_threshold(&shell);
	conclude(&shell);
}

/* Attached to observe, open loop: the window has grown, perhaps to what the algorithm would have set as the threshold. */
void onramp_shell_grown(struct shell_flow *flow, struct sock *sk)
{
	struct ack ack;

	describe(sk, 0, NO_RTT, &ack);
	if (flow->header.flags & FLOW_SLOW_START)
		observed_before(&flow->header, &flow->kept.observed, &ack);
}

struct loss_step onramp_shell_loss_before(struct shell_flow *flow, struct sock *sk, u32 base_ssthresh,
					  struct loss_payload *payload)
{
	const struct shell shell = shell_of(flow, sk);

	if (flow->has_state)
		return loss_before(&shell, base_ssthresh, payload);
	*payload = (struct loss_payload){ .base_ssthresh = base_ssthresh, .ssthresh = base_ssthresh };
	return (struct loss_step){ 0 };
}

void onramp_shell_loss_after(struct shell_flow *flow, struct sock *sk, struct loss_step step,
			     struct loss_payload *payload)
{
	const struct shell shell = shell_of(flow, sk);

	if (flow->header.flags & FLOW_STARTS)
		payload->ssthresh = start_reduced(sk, &flow->header, &flow->start, &payload->ack, payload->ssthresh);
	if (has_faster(flow, POLICY_FAST))
		fast_reduced(sk, &flow->header, &flow->fast, &payload->ack, payload->ssthresh);
	if (has_faster(flow, POLICY_SUSS))
		payload->ssthresh = suss_reduced(&flow->header, &flow->suss, &payload->ack, payload->ssthresh);
	loss_after(&shell, step, payload);
}

void onramp_shell_state(struct shell_flow *flow, struct sock *sk, u32 new_state)
{
	const struct shell shell = shell_of(flow, sk);

	state_changes(&shell, new_state);
	if (has_faster(flow, POLICY_FAST))
		fast_lands_in(sk, &flow->header, &flow->fast, new_state);
}

void onramp_shell_idle(struct shell_flow *flow)
{
	slow_start_ends(&flow->header);
}

u32 onramp_shell_undo(struct shell_flow *flow, struct sock *sk, u32 window)
{
	const struct shell shell = shell_of(flow, sk);

	struct undo_payload payload;

	loss_was_spurious(&shell, window, &payload);
	return payload.restored;
}

void onramp_shell_pace(struct shell_flow *flow, struct sock *sk)
{
	if (view_paced(sk))
		pace(sk, &flow->limits);
}

/* Whether the shell has the start of a base that controls; else the base does all by itself. */
u32 onramp_shell_starts(const struct shell_flow *flow)
{
	return flow->has_state && !flow->observing;
}

u32 onramp_shell_is_filled(const struct shell_flow *flow, const struct sock *sk)
{
	return is_filled(sk, &flow->limits);
}

u32 onramp_startup_raised(u32 before, u32 rate)
{
	return startup_raised(before, rate);
}

u32 onramp_startup_grown(u32 window, u32 raised, u32 most)
{
	return startup_grown(window, raised, most);
}

/* Whether the window may grow. */
u32 onramp_shell_startup(struct shell_flow *flow, struct sock *sk, const struct startup_step *step)
{
	const struct shell shell = shell_of(flow, sk);
	bool grows = startup_goes_on(&shell, step);

	conclude(&shell);
	return grows;
}

/* A base that controls has found its pipe full by itself. */
void onramp_shell_full(struct shell_flow *flow, struct sock *sk)
{
	const struct shell shell = shell_of(flow, sk);

	if (flow->has_state)
		reached_threshold(&shell);
	conclude(&shell);
}
