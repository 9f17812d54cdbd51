/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Sleep (shell/sleep.h) in the kernel. Included by congestion_ops.bpf.h, which knows the algorithm.
 *
 * What wakes a flow from outside is one word, which the loader raises once what it has written is there: with consumers,
 * parameters and deadlines. A flow falls asleep only if it has seen the word with an ACK before, so that it has seen with this
 * one what came before the word.
 */
#ifndef ONRAMP_SLEEP_BPF_H
#define ONRAMP_SLEEP_BPF_H

#include "../shell/sleep.h"
#include "storage.bpf.h"
#include "telemetry.bpf.h"

/* Over BBR there is no room in the socket. */
#if HAS(TRAIT_SLEEPS | TRAIT_DOZES) && !BASE_CONTROLS

#if HAS(TRAIT_DOZES)
/* The flow's algorithm goes on from where it would be. */
static __noinline void doze_ends(struct sock *sk)
{
	struct flow *flow = flow_of(sk);

	if (flow)
		flow->state.doze = sleep_doze(sleep_of(sk), limits_in_socket(sk));
}
#endif

/* The algorithm is asked with the next ACK, before which it begins anew: what it would have kept is of no use. */
static __always_inline void wake_anew(struct sock *sk)
{
	sleep_of(sk)->until = 0;
}

/* The algorithm is asked with the next ACK. */
static __always_inline void wake(struct sock *sk)
{
#if HAS(TRAIT_DOZES)
	if (sleep_of(sk)->pause_us)
		doze_ends(sk);
#endif
	wake_anew(sk);
}

/* Whether nobody has asked for anything since the flow fell asleep. */
static __always_inline bool undisturbed(const struct sleep *sleep)
{
	return sleep->registrations == (u16)telemetry_here.registrations && sleep->uncounted <= UNCOUNTED_MAX;
}

/* Whether the flow sleeps through this ACK, whose verdict is counted then. */
static __always_inline bool sleeps_on(struct sock *sk, const struct ack_sample *sample)
{
	struct sleep *sleep = sleep_of(sk);

	if (!undisturbed(sleep) || !sleep_lasts(sk, sleep, limits_in_socket(sk), sample->rtt_us, ALL_TRAITS))
		return false;
	sleep->uncounted += VERDICT_ONE;
	return true;
}

#if HAS(TRAIT_DOZES)
static __always_inline bool is_asked(const struct sleep *sleep, const struct flow *flow)
{
	return flow->state.doze.pause_us;
}

static __always_inline void ask(struct sock *sk, const struct flow *flow, const struct verdict *verdict)
{
	sleep_keeps(sleep_of(sk), limits_in_socket(sk), &flow->state.doze);
}
#else
/* Of so many verdicts that are alike, with the first ones an algorithm is asked whether it sleeps: in vain it is asked seldom. */
#define SLEEP_ASKED 64
#define SLEEP_ASKED_FIRST 4

static __always_inline bool is_asked(const struct sleep *sleep, const struct flow *flow)
{
	return sleep->uncounted / VERDICT_ONE % SLEEP_ASKED < SLEEP_ASKED_FIRST;
}

static __always_inline void ask(struct sock *sk, const struct flow *flow, const struct verdict *verdict)
{
	u32 profile = flow->header.profile, generation;
	const struct parameter_slot *slot = bpf_map_lookup_elem(&params, &profile);

	if (slot)
		sleep_of(sk)->until = CALL(sleeps_until)(&flow->state, active(slot, &generation), verdict);
}
#endif

/* After a verdict: until when the flow sleeps. */
static __noinline void fall_asleep(struct sock *sk, const struct flow *flow, const struct verdict *verdict)
{
	u16 registrations = (u16)telemetry_here.registrations;
	struct sleep *sleep = sleep_of(sk);
	/* 0: no ACK has been seen. */
	bool known = registrations && sleep->registrations == registrations;

	sleep->registrations = registrations;
	if (known && !telemetry_here.wanted && !attachment_here.deadline_ns)
		ask(sk, flow, verdict);
}

/* After an ACK that was not slept through. */
static __always_inline void sleep_if_idle(const struct shell *shell, const struct ack_step *step,
					  const struct ack_payload *payload)
{
	if (is_asked(sleep_of(shell->sk), whole(shell)) && !guarding && may_sleep(shell, step, payload))
		fall_asleep(shell->sk, whole(shell), &payload->verdict);
}

#else
static __always_inline void wake_anew(struct sock *sk)
{
}

static __always_inline void wake(struct sock *sk)
{
}

static __always_inline bool sleeps_on(struct sock *sk, const struct ack_sample *sample)
{
	return false;
}

static __always_inline void sleep_if_idle(const struct shell *shell, const struct ack_step *step,
					  const struct ack_payload *payload)
{
}
#endif

/* What happens may change what the algorithm answers. */
static __always_inline void disturb(struct sock *sk)
{
	count_all(sk);
	wake(sk);
}

#endif
