/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a control keeps: its maps, and the state of a flow, which is in socket storage. Included by congestion_ops.bpf.h,
 * which knows the algorithm.
 */
#ifndef ONRAMP_STORAGE_BPF_H
#define ONRAMP_STORAGE_BPF_H

#include "../events.h"
#include "../shell/sleep.h"
#include "../shell/start.h"
#include "base.bpf.h"
#include "guard.bpf.h"
#include "profiles.bpf.h"
#include "starts.bpf.h"

/* events.bpf.h sends it with every event. */
static const char control[16] = PASTE(ALGORITHM_UPPER, CONTROL);

struct flow {
	struct flow_header header;
	struct ALGORITHM state;
#if BASE_CONTROLS
	struct limits limits; /* there is no room for them in the socket */
#endif
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow_telemetry);
} flow_telemetry SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROFILE_MAX);
	__type(key, u32);
	__type(value, struct parameter_slot);
} params SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters);
} counters SEC(".maps");

/* Written by the loader, read by every process that shows what is attached; here for its deadline, and for what ended it. */
struct attachment attachment_here SEC(".data.attachment");

/* What `attach --default` replaced, by network namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NAMESPACES_MAX);
	__type(key, u64);
	__type(value, struct default_before);
} defaults SEC(".maps");

_Static_assert(sizeof(struct CALL(params)) <= sizeof(((struct parameter_slot *)0)->sets[0]), "too many parameters");

/*
 * The values that flows read now, and their generation. Both are in one word, which the loader writes at once: a generation comes
 * with its own values.
 */
static __always_inline const u64 *active_set(const struct parameter_slot *slot, u32 *generation)
{
	u64 head = *(const volatile u64 *)&slot->active;

	*generation = (u32)(head >> 32);
	return slot->sets[head & 1];
}

static __always_inline const struct CALL(params) * active(const struct parameter_slot *slot, u32 *generation)
{
	return (const struct CALL(params) *)active_set(slot, generation);
}
_Static_assert(offsetof(struct parameter_slot, active) == 0 && offsetof(struct parameter_slot, generation) == 4 &&
		       __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the first word has the active set below and the generation above");

#if !BASE_CONTROLS
/* Of the room in the socket (limits_in_socket) what is before the limits. */
static __always_inline struct sleep *sleep_of(struct sock *sk)
{
	return (struct sleep *)&((struct inet_connection_sock *)sk)->icsk_ca_priv[8];
}
#endif

/*
 * The limits are read for each ACK that grows the window and for each burst, far more often than a verdict is given. So
 * where the base leaves room they are not in the flow's storage, which must be looked up, but in the socket itself: at the
 * end of the area that the kernel gives to a congestion control, and clears before it calls init. CUBIC's state has the
 * first 60 of its 104 bytes, BBR's has all.
 */
static __always_inline struct limits *limits_in_socket(struct sock *sk)
{
	return (struct limits *)&((struct inet_connection_sock *)sk)->icsk_ca_priv[10];
}

static __always_inline struct counters *counters_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&counters, &zero);
}

static __always_inline struct flow *flow_of(struct sock *sk)
{
	return bpf_sk_storage_get(&flows, sk, 0, 0);
}

static __always_inline struct limits *limits_of(struct sock *sk, struct flow *flow)
{
#if BASE_CONTROLS
	return &flow->limits;
#else
	return limits_in_socket(sk);
#endif
}

/* Null: the flow has none, because the base runs alone. */
static __always_inline struct limits *find_limits(struct sock *sk)
{
#if BASE_CONTROLS
	struct flow *flow = flow_of(sk);

	return flow ? &flow->limits : 0;
#else
	return limits_in_socket(sk);
#endif
}

/* Whether what was attached for a time has had it, or its guard has tripped. */
static __always_inline bool expired(void)
{
	if (guarding && attachment_here.flags & ATTACHMENT_TRIPPED)
		return true;
	return attachment_here.deadline_ns && bpf_ktime_get_boot_ns() >= attachment_here.deadline_ns;
}

/*
 * The flow, unless the attachment's time is over: then nothing of what its algorithm wanted goes on, and the base runs
 * alone. Its state stays, so that it goes on with its algorithm if the deadline is lifted.
 */
static __always_inline struct flow *flow_in_time(struct sock *sk)
{
	struct flow *flow = flow_of(sk);

	if (!flow || !expired())
		return flow;
	suspend(sk, &flow->header, limits_of(sk, flow));
	return 0;
}

/* Whether two names are the same; each has so many numbers of 64 bits, NUL padding included. */
static __always_inline bool same_name(const u8 *one, const u8 *other, u32 words)
{
	for (u32 i = 0; i < words; i++) {
		if (((const u64 *)one)[i] != ((const u64 *)other)[i])
			return false;
	}
	return true;
}

/*
 * Gives the flow the parameter set of this name; it has the attachment's own, set 0, where there is none. The loader gives a
 * set up only when no flow is counted for it, so it is counted first and then looked at again. Global, so that the verifier
 * walks its loop once, and not in each state in which a flow begins.
 */
__noinline int choose_profile(struct flow_header *flow, const struct profile_name *name, const struct attachment *here,
			      struct counters *count)
{
	if (!flow || !name || !here || !count)
		return 0;
	for (u32 i = 1; i < PROFILE_MAX; i++) {
		const u32 words = sizeof(name->profile) / sizeof(u64);
		u64 before;

		if (!same_name(name->profile, here->profile_names[i], words))
			continue;
		before = __sync_fetch_and_add(&count->profile_flows[i], 1);
		/* Used, so that it fetches: on every processor that is ordered before the second look. */
		barrier_var(before);
		if (same_name(name->profile, here->profile_names[i], words))
			flow->profile = (u16)i;
		else
			__sync_fetch_and_add(&count->profile_flows[i], -1);
		return 0;
	}
	return 0;
}

/* Begins with the parameter set that a rule has named for the socket and this control. */
static __always_inline void begin_profile(struct sock *sk, struct flow_header *flow, struct counters *count)
{
	const struct profile_name *name;

	if (!count || attachment_here.profiles < 2)
		return;
	name = bpf_sk_storage_get(&profile_choices, sk, 0, 0);
	if (name && same_name(name->control, (const u8 *)control, sizeof(name->control) / sizeof(u64)))
		choose_profile(flow, name, &attachment_here, count);
}

static __always_inline void end_profile(const struct flow_header *flow, struct counters *count)
{
	u32 profile = flow->profile % PROFILE_MAX;

	if (profile)
		__sync_fetch_and_add(&count->profile_flows[profile], -1);
}

/* The flow, which gets its state now. Null: the base runs alone. For want of memory only until the next ACK. */
static __noinline struct flow *begin_flow(struct sock *sk)
{
	struct counters *count = counters_here();
	const struct start *start;
	struct flow *flow;

	if (expired() || (guarding && guard_arm(sk) == ARM_CONTROL))
		return 0;
	flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow) {
		if (count)
			__sync_fetch_and_add(&count->flows.state_failures, 1);
		return 0;
	}
	if (observing)
		bpf_sk_storage_get(&flow_telemetry, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	CALL(restart)(&flow->state);
	begin_profile(sk, &flow->header, count);
	start = bpf_sk_storage_get(&starts, sk, 0, 0);
	if (start)
		start_goes_on(&flow->header, start);
	return flow;
}

static __always_inline void count_verdicts(u32 outcome, u32 number)
{
	struct counters *count = counters_here();

	if (count)
		__sync_fetch_and_add(&count->outcomes[outcome % OUTCOME_MAX], number);
}

#if BASE_CONTROLS
static __always_inline void count_all(struct sock *sk)
{
}

static __always_inline void count_verdict(struct sock *sk, struct flow_telemetry *kept, u32 outcome)
{
	count_verdicts(outcome, 1);
	if (kept)
		kept->outcomes[outcome % OUTCOME_MAX]++;
}
#else
/* What has not been counted yet. */
static __noinline void count_all(struct sock *sk)
{
	struct sleep *sleep = sleep_of(sk);

	count_verdicts(sleep->uncounted % VERDICT_ONE, sleep->uncounted / VERDICT_ONE);
	sleep->uncounted = 0;
}

/* A verdict that ends a run of others, or is to be seen at once. */
static __noinline void count_now(struct sock *sk, u32 outcome)
{
	count_all(sk);
	count_verdicts(outcome, 1);
	sleep_of(sk)->uncounted = outcome;
}

/* Counts a verdict for the control, with others that are alike, and, where that is kept, for the flow. */
static __always_inline void count_verdict(struct sock *sk, struct flow_telemetry *kept, u32 outcome)
{
	struct sleep *sleep = sleep_of(sk);

	outcome %= OUTCOME_MAX;
	if (kept || outcome == OUTCOME_EXIT || (sleep->uncounted ^ outcome) % VERDICT_ONE ||
	    sleep->uncounted > UNCOUNTED_MAX)
		count_now(sk, outcome);
	else
		sleep->uncounted += VERDICT_ONE;
	if (kept)
		kept->outcomes[outcome]++;
}
#endif

#endif
