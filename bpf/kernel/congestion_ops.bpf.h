/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The shell that all algorithms share: a tcp_congestion_ops whose slow start is an algorithm of algorithm/ and whose
 * everything else is the base. A <name>.bpf.c includes its algorithm, names it, and includes this file:
 *
 *	#include "algorithm/search.h"
 *	#define ALGORITHM search
 *	#define ALGORITHM_UPPER SEARCH
 *	#include "kernel/congestion_ops.bpf.h"
 *
 * Life of a flow, in socket storage from the first ACK on that finds more given to send than a first window holds. Nine
 * of ten connections of a server never get there; they cost two counts.
 *
 *	first window ──► slow start ──ssthresh (loss, ECN, timeout)──► reduced ──undo──► slow start anew
 *	                    │  ▲                                          │
 *	               verdict or threshold                          timeout, idle: slow start anew
 *	                    ▼                                             ▼
 *	              congestion avoidance (the base) ◄───────────────────┘
 */
#include "window.bpf.h"
#include "guard.bpf.h"
#include "profiles.bpf.h"

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define CALL(function) PASTE(ALGORITHM, function)
#define ALL_TRAITS PASTE(ALGORITHM_UPPER, TRAITS)
#define HAS(trait) (ALL_TRAITS & (trait))

/* Defines <name>_<operation>; BPF_PROG pastes its name, so it must be expanded before. */
#define NAMED_PROG(name, args...) BPF_PROG(name, args)
#define OPERATION(type, operation, args...) SEC("struct_ops") type NAMED_PROG(CALL(operation), args)

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct flow {
	struct flow_header header;
	struct ALGORITHM state;
#if BASE_CONTROLS
	struct limits limits; /* there is no room for it in the socket */
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

/* Written by the loader, read by whoever asks what is attached; here for its deadline, and for what ended it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct attachment);
} attachment SEC(".maps");

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
static __always_inline const struct CALL(params) * active(const struct parameter_slot *slot, u32 *generation)
{
	u64 head = *(const volatile u64 *)&slot->active;

	*generation = (u32)(head >> 32);
	return (const struct CALL(params) *)slot->sets[head & 1];
}
_Static_assert(offsetof(struct parameter_slot, active) == 0 && offsetof(struct parameter_slot, generation) == 4 &&
		       __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the first word has the active set below and the generation above");

#include "extra.bpf.h"
#include "observe.bpf.h"

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

static __always_inline struct attachment *attachment_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&attachment, &zero);
}

/* Whether what was attached for a time has had it, or its guard has tripped. */
static __always_inline bool expired(void)
{
	const struct attachment *here = attachment_here();

	if (guarding && here && here->flags & ATTACHMENT_TRIPPED)
		return true;
	return here && here->deadline_ns && bpf_ktime_get_boot_ns() >= here->deadline_ns;
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
	flow->header.flags &= ~(FLOW_SLOW_START | FLOW_EXITING | FLOW_AIMED);
	limits_of(sk, flow)->flags &= ~LIMITS_GROWTH;
	give_back_pacing(sk, limits_of(sk, flow));
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
 * Begins with the parameter set that a rule has named for the socket; with the attachment's own, set 0, where there is none
 * of that name. The loader gives a set up only when no flow is counted for it, so it is counted first and then looked at
 * again.
 */
static __always_inline void begin_profile(struct sock *sk, struct flow_header *flow, struct counters *count)
{
	const struct attachment *here = attachment_here();
	const struct profile_name *name;

	if (!count || !here || here->profiles < 2)
		return;
	name = bpf_sk_storage_get(&profile_choices, sk, 0, 0);
	if (!name || !same_name(name->control, (const u8 *)control, sizeof(name->control) / sizeof(u64)))
		return;
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
		return;
	}
}

/* What an initial window holds, bytes. */
static __always_inline u64 first_window(const struct tcp_sock *tp)
{
	return (u64)INITIAL_WINDOW * tp->mss_cache;
}

/* Whether the application has given more to send, so far, than a first window holds: before, there is nothing to judge. */
static __always_inline bool has_outgrown(const struct tcp_sock *tp)
{
	return tp->bytes_sent - tp->bytes_retrans + (tp->write_seq - tp->snd_nxt) > first_window(tp);
}

/* The flow, which gets its state now. Null: the base runs alone. For want of memory only until the next ACK. */
static __noinline struct flow *begin_flow(struct sock *sk)
{
	struct counters *count = counters_here();
	struct flow *flow;

	if (expired() || (guarding && guard_arm(sk) == ARM_CONTROL))
		return 0;
	flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow) {
		if (count)
			__sync_fetch_and_add(&count->state_failures, 1);
		return 0;
	}
	if (observing)
		bpf_sk_storage_get(&flow_telemetry, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	begin_profile(sk, &flow->header, count);
	CALL(restart)(&flow->state);
	return flow;
}

static __always_inline void enter_slow_start(struct sock *sk, struct flow *flow, const struct ack *ack)
{
	struct flow_header *header = &flow->header;

	if (!(header->flags & FLOW_STARTED)) {
		header->flags |= FLOW_STARTED;
		header->start_us = ack->now_us - (ack->rtt_us > 0 ? (u32)ack->rtt_us : ack->smoothed_rtt_us);
	}
	header->flags |= FLOW_SLOW_START;
	header->flags &= ~FLOW_OBSERVED;
	if (header->slow_starts < 0xffff)
		header->slow_starts++;
	CALL(restart)(&flow->state);
	restart_extra(sk);
}

/*
 * The algorithm's turn. Global, so that the verifier looks at it once, and not again in every state that it is called
 * from.
 */
__noinline int judge(struct flow *flow, const struct CALL(params) * values, struct ack_told *told EXTRA_PARAMETER)
{
	if (!flow || !values || !told)
		return 0;
#if HAS(TRAIT_EXTRA)
	if (extra)
		judge_extra(extra, values, told);
#endif
	CALL(on_ack)(&flow->state, values, &told->ack, &told->verdict);
	return 0;
}

/* Asks the algorithm about an ACK. False: there are no parameters, which only a broken map could cause. */
static __always_inline bool ask(struct sock *sk, struct flow *flow, struct ack_told *told)
{
	u32 profile = flow->header.profile;
	const struct parameter_slot *slot = bpf_map_lookup_elem(&params, &profile);
	const struct CALL(params) * values;

	if (!slot)
		return false;
	values = active(slot, &flow->header.generation);
	judge(flow, values, told EXTRA_TO_JUDGE(sk, values));
	told->asked = 1;
	return true;
}

/* Attached to observe: the algorithm is asked until it would have left. */
static __always_inline void consider(struct sock *sk, struct flow *flow, struct exit_record *observed,
				     struct ack_told *told)
{
	struct flow_header *header = &flow->header;

	if (header->flags & FLOW_OBSERVED)
		return;
	if (observed->window_after && observed->reason == EXIT_NONE && told->ack.cwnd >= observed->window_after) {
		record_observed(header, observed, &told->ack);
	} else if (ask(sk, flow, told)) {
		note_verdict(header, observed, &told->ack, &told->verdict);
	}
}

/* Counts a verdict for the control and, where that is kept, for the flow. */
static __always_inline void count_verdict(struct flow_telemetry *kept, u32 outcome)
{
	struct counters *count = counters_here();

	outcome %= OUTCOME_MAX;
	if (count)
		__sync_fetch_and_add(&count->outcomes[outcome], 1);
	if (kept)
		kept->outcomes[outcome]++;
}

/* In slow start the algorithm is asked. */
static __always_inline void on_ack_starting(struct sock *sk, struct flow *flow, struct flow_telemetry *heard,
					    struct flow_telemetry *kept, struct ack_told *told)
{
	struct flow_header *header = &flow->header;
	bool begins = !(header->flags & FLOW_SLOW_START);
	struct verdict *verdict = &told->verdict;
	const struct ack *ack = &told->ack;

	if (begins) {
		enter_slow_start(sk, flow, ack);
		if (heard)
			observe_restart(flow, heard, ack);
	}
	if (observing) {
		if (kept)
			consider(sk, flow, &kept->observed, told);
	} else if (begins && header->flags & FLOW_EXITING) {
		/* A loss interrupted the drain and was undone: the exit stands, the drain is over. */
		verdict->ssthresh = header->undo_limit;
		verdict->cwnd = (u32)min_u64(ack->cwnd, header->undo_limit);
		apply_verdict(sk, header, limits_of(sk, flow), ack, verdict, ALL_TRAITS);
	} else if (ask(sk, flow, told)) {
		apply_verdict(sk, header, limits_of(sk, flow), ack, verdict, ALL_TRAITS);
	}
}

/*
 * `starting`: in slow start; `asking`: there, and with TRAIT_ALWAYS elsewhere, too. False: the base judges, alone. In a
 * first window nobody does: what would end slow start there would end it before the algorithm has been asked.
 */
static __always_inline bool on_ack(struct sock *sk, const struct ack_sample *sample, bool starting, bool asking)
{
	struct flow *flow = flow_in_time(sk);
	struct flow_telemetry *heard, *kept;
	struct ack_told told;

	if (!flow) {
		if (!asking || !has_outgrown(tcp_sk(sk)))
			return true;
		flow = begin_flow(sk);
		if (!flow)
			return false;
	}
	heard = observe_at(sk, flow, starting ? LEVEL_EXIT : LEVEL_ROUND);
	kept = observing ? bpf_sk_storage_get(&flow_telemetry, sk, 0, 0) : heard;
	describe(sk, sample, &told.ack);
	/* Only the rest: what has just been described would be cleared first. */
	told.verdict = (struct verdict){};
	told.asked = told.flags = told.generation = told.unused = 0;
	if (starting) {
		on_ack_starting(sk, flow, heard, kept, &told);
	} else if (asking && ask(sk, flow, &told)) {
		apply_window(sk, &flow->header, limits_of(sk, flow), &told.verdict, ALL_TRAITS);
	}
	if (told.asked)
		count_verdict(kept, told.verdict.outcome);
	if (heard)
		observe_ack(sk, flow, heard, &told);
	observe_exit(sk, flow);
	return true;
}

/*
 * Whose threshold the window has reached. What nobody has set since the connection began is that of an earlier one to the same
 * peer (tcp_metrics), or of its route.
 */
static __always_inline u32 threshold_reason(const struct flow_header *header)
{
	if (header->flags & FLOW_AIMED)
		return EXIT_ALGORITHM;
	return header->flags & FLOW_ADOPTED || header->slow_starts > 1 ? EXIT_SSTHRESH : EXIT_CACHED_SSTHRESH;
}

/* The window has grown to a threshold that was set before this slow start, or above the window by the algorithm. */
static __noinline void reached_threshold(struct sock *sk)
{
	struct flow *flow = flow_of(sk);
	struct ack ack;

	if (!flow || !(flow->header.flags & FLOW_SLOW_START))
		return;
	describe(sk, 0, &ack);
	record_exit(&flow->header, &ack, threshold_reason(&flow->header));
	finish_exit(sk, &flow->header, limits_of(sk, flow), ack.cwnd);
	observe_exit(sk, flow);
}

static __always_inline void end_profile(const struct flow_header *flow, struct counters *count)
{
	u32 profile = flow->profile % PROFILE_MAX;

	if (profile)
		__sync_fetch_and_add(&count->profile_flows[profile], -1);
}

OPERATION(void, init, struct sock *sk)
{
	struct counters *count = counters_here();
	struct tcp_sock *tp = tcp_sk(sk);
	bool adopted = tp->bytes_sent > first_window(tp);
	struct flow *flow;

	base_init(sk);
	if (count)
		__sync_fetch_and_add(&count->flows_started, 1);
	if (!adopted)
		return;
	/*
	 * Taken over in mid-connection. What has sent no more than its initial window is still at its start; anything
	 * else is past it, and a threshold that its last control never set must not start it anew. Unless its window
	 * has hardly grown, as that of a connection kept alive for small requests: it may still have to.
	 */
	if (count)
		__sync_fetch_and_add(&count->flows_adopted, 1);
	if (guarding)
		guard_leave_out(sk);
	flow = begin_flow(sk);
	if (!flow)
		return;
	flow->header.flags |= FLOW_ADOPTED;
	expect_filled(tp, limits_of(sk, flow));
	base_past_start(sk);
	observe_at(sk, flow, LEVEL_EXIT);
}

/* Set again by every flow that ends: the loader, which lifts a deadline, writes all of the attachment. */
static __always_inline void trip(void)
{
	struct attachment *here = attachment_here();

	if (here)
		__sync_fetch_and_or(&here->flags, ATTACHMENT_TRIPPED);
}

OPERATION(void, release, struct sock *sk)
{
	struct counters *count = counters_here();
	struct flow *flow = flow_of(sk);
	struct flow_telemetry *heard;

	if (guarding && guard_end(sk, expired()))
		trip();
	if (!flow) {
		if (count && was_initialised(sk))
			__sync_fetch_and_add(&count->flows_without_state, 1);
		return;
	}
	heard = observe_at(sk, flow, LEVEL_EXIT);
	if (heard)
		observe_end(sk, flow, heard);
	if (count) {
		end_profile(&flow->header, count);
		__sync_fetch_and_add(&count->exits[flow->header.exit.reason % 8], 1);
		__sync_fetch_and_add(&count->undone, flow->header.exit.undone);
	}
	give_back_pacing(sk, limits_of(sk, flow));
	delete_extra(sk);
	bpf_sk_storage_delete(&flow_telemetry, sk);
	bpf_sk_storage_delete(&flows, sk);
}

OPERATION(void, pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	bool starting = in_slow_start(sk);
	bool asking = starting || (HAS(TRAIT_ALWAYS) && !observing && !in_recovery(sk));

	/* In congestion avoidance the base works alone: not even the state is looked up, unless somebody listens. */
	if ((asking || wanted(LEVEL_ROUND)) && !on_ack(sk, sample, starting, asking))
		base_acked_alone(sk, sample);
	else
		base_acked(sk, sample);
}

/* Whether the last verdict was GROWTH_LIMITED. */
static __always_inline bool growth_is_limited(struct sock *sk)
{
#if BASE_CONTROLS
	const struct limits *limits = find_limits(sk);

	return limits && limits->flags & LIMITS_GROWTH;
#else
	return limits_in_socket(sk)->flags & LIMITS_GROWTH;
#endif
}

/* The base grows the window, within the limit of the last verdict if it set one. */
static __always_inline void grow(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool slow_start = tp->snd_cwnd < tp->snd_ssthresh;
	u32 before = tp->snd_cwnd;

	if (HAS(TRAIT_LIMITS_GROWTH) && (slow_start || HAS(TRAIT_ALWAYS)) && growth_is_limited(sk)) {
		const struct limits *limits = find_limits(sk);

		if (!limits)
			return;
		acked = (u32)min_u64(acked, limits->growth);
		if (!acked)
			return;
		base_cong_avoid(sk, ack, acked);
		limit_growth(tp, limits, before);
	} else {
		base_cong_avoid(sk, ack, acked);
	}
	if (slow_start && tp->snd_cwnd >= tp->snd_ssthresh)
		reached_threshold(sk);
}

#if BASE_CONTROLS
/* Slow start was left by an event, of which the kernel has kept the window before. */
static __always_inline void left_by(struct sock *sk, struct flow *flow, u32 reason)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ack ack;

	describe(sk, 0, &ack);
	ack.cwnd = tp->prior_cwnd;
	flow->header.flags |= FLOW_REDUCED;
	record_exit(&flow->header, &ack, reason);
	finish_exit(sk, &flow->header, limits_of(sk, flow), tp->snd_cwnd);
	observe_exit(sk, flow);
}

/* An ACK in the base's start, in which the window is ours. `context`: of cong_control. */
static __always_inline void control_start(struct sock *sk, struct flow *flow, unsigned long long *context)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool left = base_has_left(sk), recovering = base_was_recovering(sk);
	struct base_sample told = {};
	u32 before = tp->snd_cwnd, window = before;

	if (left)
		window = base_control_measuring(context, is_filled(tp, limits_of(sk, flow)), before);
	else
		base_control_unjudged(context, &told);
	if (!base_in_startup(sk))
		return;
	recovering |= congestion_state(sk) == TCP_CA_Recovery;
	if (recovering && base_loss_fills(sk)) {
		if (flow->header.flags & FLOW_SLOW_START)
			left_by(sk, flow, EXIT_LOSS);
		window = 0;
	}
	if (recovering) {
		/* The base's window, but no growth. */
		tp->snd_cwnd = (u32)min_u64(tp->snd_cwnd, tp->prior_cwnd);
	} else if (window) {
		if (window > before)
			expect_filled(tp, limits_of(sk, flow));
		tp->snd_cwnd = window;
	}
	if (!window)
		base_full(sk);
	else if (left && tp->srtt_us)
		sk->sk_pacing_rate = min_u64(window_rate(tp) * 5 / 4, sk->sk_max_pacing_rate);
	else if (!left && !recovering && !in_recovery(sk))
		grow(sk, tp->snd_una, told.acked);
}

/* An ACK, after pkts_acked and after what it says of losses. */
SEC("struct_ops") void CALL(cong_control)(unsigned long long *context)
{
	struct sock *sk = (struct sock *)context[0];
	struct base_sample told = {};
	struct flow *flow;

	if (!base_in_startup(sk)) {
		base_control(context, &told);
		return;
	}
	flow = flow_in_time(sk);
	if (flow && !observing) {
		control_start(sk, flow, context);
		return;
	}
	base_control(context, &told);
	if (base_is_full(sk))
		reached_threshold(sk);
}

OPERATION(u32, sndbuf_expand, struct sock *sk)
{
	return base_sndbuf_expand(sk);
}
#else
OPERATION(void, cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	grow(sk, ack, acked);
}
#endif

/* Loss, ECN or timeout. Which of them it is comes with the state that follows at once. */
OPERATION(u32, ssthresh, struct sock *sk)
{
	struct flow *flow = flow_in_time(sk);
	u32 threshold = base_ssthresh(sk);
	struct loss_told told = { .base_ssthresh = threshold, .ssthresh = threshold };
	struct flow_header *header;
	struct flow_telemetry *heard;
	struct parameter_slot *slot;
	u32 profile;

	if (!flow)
		return threshold;
	header = &flow->header;
	heard = observe_at(sk, flow, LEVEL_ROUND);
	describe(sk, 0, &told.ack);
	if (header->flags & FLOW_SLOW_START && !BASE_CONTROLS) {
		profile = header->profile;
		slot = bpf_map_lookup_elem(&params, &profile);
		if (slot && !observing) {
			told.asked = 1;
			told.ssthresh =
				CALL(on_loss)(&flow->state, active(slot, &header->generation), &told.ack, threshold);
		}
		if (header->exit.reason == EXIT_NONE)
			header->flags |= FLOW_UNNAMED;
		header->flags |= FLOW_REDUCED;
		record_exit(header, &told.ack, EXIT_LOSS);
		finish_exit(sk, header, limits_of(sk, flow), told.ssthresh);
	} else if (!(header->flags & FLOW_SLOW_START)) {
		/* From here on an undo is about this event, not about the one that ended slow start. */
		header->flags &= ~FLOW_REDUCED;
	}
	if (heard)
		tell_loss(flow, heard, &told);
	return told.ssthresh;
}

/* Who asked for less without a loss. */
static __always_inline u32 mark_reason(struct sock *sk)
{
	return tcp_sk(sk)->ecn_flags & TCP_ECN_ANY ? EXIT_ECN : EXIT_LOCAL;
}

OPERATION(void, set_state, struct sock *sk, u8 new_state)
{
	struct flow *flow = flow_of(sk);
	u32 old_state = congestion_state(sk);
	struct flow_telemetry *heard;
	struct flow_header *header;

	base_state(sk, new_state);
	if (!flow)
		return;
	header = &flow->header;
	if (header->flags & FLOW_UNNAMED) {
		if (new_state == TCP_CA_Loss)
			header->exit.reason = EXIT_TIMEOUT;
		else if (new_state == TCP_CA_CWR)
			header->exit.reason = mark_reason(sk);
		header->flags &= ~FLOW_UNNAMED;
	}
#if BASE_CONTROLS
	if (header->flags & FLOW_SLOW_START && !observing) {
		if (new_state == TCP_CA_CWR)
			left_by(sk, flow, mark_reason(sk));
		if (new_state == TCP_CA_Loss) {
			left_by(sk, flow, EXIT_TIMEOUT);
			base_start_again(sk);
		}
	}
#endif
	if (new_state == TCP_CA_Loss)
		header->flags &= ~FLOW_SLOW_START;
	heard = observe_at(sk, flow, LEVEL_ROUND);
	if (heard)
		observe_state(sk, flow, heard, old_state, new_state);
	observe_exit(sk, flow);
}

OPERATION(void, cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct flow *flow;

	base_cwnd_event(sk, event);
	if (event != CA_EVENT_CWND_RESTART)
		return;
	flow = flow_of(sk);
	if (flow)
		flow->header.flags &= ~FLOW_SLOW_START;
}

OPERATION(void, cwnd_event_tx_start, struct sock *sk)
{
	base_tx_start(sk);
}

/*
 * The loss was none. A recorded exit that it caused is taken back. Where it interrupted a drain, the exit stands and
 * the window is restored no further than the drain was heading.
 */
OPERATION(u32, undo_cwnd, struct sock *sk)
{
	u32 window = base_undo_cwnd(sk);
	struct flow *flow = flow_in_time(sk);
	struct undo_told told = { .cwnd = tcp_sk(sk)->snd_cwnd };
	struct flow_telemetry *heard;
	struct flow_header *header;

	if (!flow)
		return window;
	header = &flow->header;
	if (header->flags & FLOW_REDUCED && header->exit.reason == EXIT_ALGORITHM) {
		if (header->undo_limit) {
			header->flags |= FLOW_EXITING;
			window = (u32)max_u64(tcp_sk(sk)->snd_cwnd, min_u64(window, header->undo_limit));
		}
	} else if (header->flags & FLOW_REDUCED) {
		header->exit.reason = EXIT_NONE;
		if (header->exit.undone < 0xff)
			header->exit.undone++;
		told.exit_undone = 1;
#if BASE_CONTROLS
		base_start_again(sk);
#endif
	}
	header->flags &= ~FLOW_REDUCED;
	told.restored = window;
	heard = observe_at(sk, flow, LEVEL_EXIT);
	if (heard)
		tell_undo(flow, heard, &told);
	return window;
}

#if HAS(TRAIT_PACES) || BASE_CONTROLS
/* Asked each time before data is sent: how many segments a burst must have, which the base knows. */
OPERATION(u32, min_tso_segs, struct sock *sk)
{
	struct limits *limits;

	if (HAS(TRAIT_PACES) && sk->sk_pacing_status != SK_PACING_NONE) {
		limits = find_limits(sk);
		if (limits)
			pace(sk, limits);
	}
	return base_min_tso_segs(sk);
}
#endif

_Static_assert(sizeof(PASTE(ALGORITHM_UPPER, CONTROL)) <= TCP_CA_NAME_MAX, "the control's name is too long");

SEC(".struct_ops.link")
struct tcp_congestion_ops ALGORITHM = {
	.init = (void *)CALL(init),
	.release = (void *)CALL(release),
	.ssthresh = (void *)CALL(ssthresh),
#if BASE_CONTROLS
	.cong_control = (void *)CALL(cong_control),
	.sndbuf_expand = (void *)CALL(sndbuf_expand),
#else
	.cong_avoid = (void *)CALL(cong_avoid),
#endif
	.set_state = (void *)CALL(set_state),
	.cwnd_event = (void *)CALL(cwnd_event),
	.cwnd_event_tx_start = (void *)CALL(cwnd_event_tx_start),
	.pkts_acked = (void *)CALL(pkts_acked),
	.undo_cwnd = (void *)CALL(undo_cwnd),
#if HAS(TRAIT_PACES) || BASE_CONTROLS
	.min_tso_segs = (void *)CALL(min_tso_segs),
#endif
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = PASTE(ALGORITHM_UPPER, CONTROL),
};
