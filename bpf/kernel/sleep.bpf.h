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
#if HAS(TRAIT_SLEEPS) && !BASE_CONTROLS

/* The algorithm is asked with the next ACK. */
static __always_inline void wake(struct sock *sk)
{
	sleep_of(sk)->until = 0;
}

/* Whether the flow sleeps through this ACK, whose verdict is counted then. */
static __always_inline bool sleeps_on(struct sock *sk, const struct ack_sample *sample)
{
	struct sleep *sleep = sleep_of(sk);

	if (!sleep_lasts(sk, sleep, sample->rtt_us, ALL_TRAITS) ||
	    sleep->registrations != telemetry_here.registrations || sleep->uncounted > UNCOUNTED_MAX)
		return false;
	sleep->uncounted += VERDICT_ONE;
	return true;
}

/* Of so many verdicts that are alike, with the first ones an algorithm is asked whether it sleeps. */
#define SLEEP_ASKED 64
#define SLEEP_ASKED_FIRST 4

/* After a verdict. */
static __noinline void fall_asleep(struct sock *sk, const struct flow *flow, const struct verdict *verdict)
{
	u32 profile = flow->header.profile, registrations = telemetry_here.registrations, generation;
	const struct parameter_slot *slot = bpf_map_lookup_elem(&params, &profile);
	struct sleep *sleep = sleep_of(sk);
	bool known = sleep->registrations == registrations;

	sleep->registrations = registrations;
	if (slot && known && !telemetry_here.wanted && !attachment_here.deadline_ns)
		sleep->until = CALL(sleeps_until)(&flow->state, active(slot, &generation), verdict);
}

/* After an ACK that was not slept through. */
static __always_inline void sleep_if_idle(const struct shell *shell, const struct ack_step *step,
					  const struct ack_payload *payload)
{
	u32 alike = sleep_of(shell->sk)->uncounted / VERDICT_ONE;

	/* Where it is asked in vain it is asked seldom. */
	if (alike % SLEEP_ASKED < SLEEP_ASKED_FIRST && !guarding && may_sleep(shell, step, payload))
		fall_asleep(shell->sk, whole(shell), &payload->verdict);
}

#else
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
