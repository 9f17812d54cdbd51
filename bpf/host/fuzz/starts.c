/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Fuzz target (libFuzzer): the start that ONRAMP_FUZZ_NAME names, under an algorithm and over a base that the input chooses, with
 * all of the shell as the simulator has it (src/shell.c): ACKs, receivers' windows, losses, marks, timeouts, idle times and reordering
 * that the input chooses too. Without a name it prints the names and ends. ONRAMP_FUZZ_TRACE=1 shows every call.
 *
 * What must hold: a window that a start sets is within the receiver's, the clamp, what it remembers, or three times the largest flight;
 * it is never 0; and every start ends.
 */
#include "check.h"
#include "named.h"
#include "sender.h"
#include "../src/shell.c"

struct start_row {
	const char *name;
	u32 remembered; /* what there is to do over a remembered path */
	u32 faster;	/* and over another, of enum start_policy; 0: it doubles */
};

static const struct start_row rows[] = {
	{ "start-double", 0, 0 },
	{ "start-resume", 1 << POLICY_RESUME, 0 },
	{ "start-resume+window", START_BOTH, 0 },
	{ "start-fast", 0, POLICY_FAST },
	{ "start-suss", 0, POLICY_SUSS },
	{ "start-resume+window+fast", START_BOTH, POLICY_FAST },
	{ "start-resume+window+suss", START_BOTH, POLICY_SUSS },
};

static const struct start_row *row;
static bool traced;
static u64 raised_by_start, raised_by_fast, raised_by_suss, landed, retreated;

static void report(void)
{
	printf("%s reached %" PRIu64 " windows from memory, %" PRIu64 " by fast, %" PRIu64 " by suss, %" PRIu64
	       " landings, %" PRIu64 " retreats\n",
	       row->name, raised_by_start, raised_by_fast, raised_by_suss, landed, retreated);
}

static const char *name_of(size_t number)
{
	return rows[number].name;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	traced = getenv("ONRAMP_FUZZ_TRACE");
	row = &rows[named(name_of, sizeof(rows) / sizeof(rows[0]), "start")];
	atexit(report);
	return 0;
}

/* A connection with a start. */
struct starting {
	struct flow flow;
	struct sender sender;
	u64 largest_flight; /* segments */
	u32 beta_tenths;    /* of the base */
};

static void require_window(const struct starting *one, const struct ack *ack, bool holds, const char *what)
{
	const struct shell_flow *flow = &one->sender.flow;

	if (!holds)
		fprintf(stderr,
			"  window=%u threshold=%u receiver=%u flags=%#x start: phase=%u end=%u target=%u rate=%" PRIu64
			" rtt_us=%u fast: phase=%u flight=%u suss: round=%u target=%u\n",
			one->sender.sk.cwnd, one->sender.sk.ssthresh, one->sender.sk.receive_window, flow->header.flags,
			flow->start.phase, flow->start.end, flow->start.target, flow->start.rate, flow->start.rtt_us,
			flow->fast.phase, flow->fast.flight, flow->suss.round, flow->suss.target);
	require(holds, &one->flow, ack, 0, what);
}

/* What an ACK has made of the window, before the base adds to it. */
static void require_started(const struct starting *one, u16 flags, const struct ack *ack)
{
	const struct sock *sk = &one->sender.sk;
	u32 open = sk->receive_window / sk->mss;
	u64 grown = (u64)sk->cwnd + ack->acked;
	const struct start *start = &one->sender.flow.start;

#define REQUIRE(condition, what) require_window(one, ack, condition, what)
	REQUIRE(sk->cwnd >= min_u64(ack->cwnd, MIN_WINDOW), "a window below MIN_WINDOW");
	REQUIRE(sk->ssthresh >= MIN_WINDOW, "a threshold below MIN_WINDOW");
	REQUIRE(one->sender.flow.suss.round <= SUSS_LAST_ROUND, "a round beyond the last");
	REQUIRE(!(one->sender.flow.header.flags & FLOW_STARTS) || !start->claim_ns || sk->now_us < start->late_us ||
			start->phase == START_VALIDATING,
		"a start whose claim is void");
	if (sk->cwnd <= max_u64(ack->cwnd, MIN_WINDOW))
		return;
	REQUIRE(flags & (FLOW_STARTS | FLOW_FASTER), "a window that is raised without a start");
	REQUIRE(sk->cwnd <= sk->cwnd_clamp, "a window above the clamp");
	if (flags & FLOW_STARTS) {
		raised_by_start++;
		REQUIRE(sk->cwnd <= max_u64(open, INITIAL_WINDOW), "a window above the receiver's");
		REQUIRE(sk->cwnd <= max_u64(start->target, INITIAL_WINDOW), "a window above the target");
		return;
	}
	raised_by_fast += row->faster == POLICY_FAST;
	raised_by_suss += row->faster == POLICY_SUSS;
	REQUIRE(grown <= open, "a window above the receiver's");
	REQUIRE(grown <= one->largest_flight * 3, "a window above three times the largest flight");
	REQUIRE(grown <= ack->ssthresh, "a window above the threshold");
#undef REQUIRE
}

static void acknowledge(struct starting *one, struct arrival arrival, u32 count)
{
	struct sender *sender = &one->sender;
	struct sock *sk = &sender->sk;
	struct ack_payload payload;
	struct ack_step step;
	u16 flags;

	for (u32 i = 0; i < count; i++) {
		payload = (struct ack_payload){ 0 };
		sender_is_acknowledged(sender, arrival);
		one->largest_flight = max_u64(one->largest_flight, (u64)sk->in_flight + sender->acked);
		if (onramp_shell_ack_before(&sender->flow, sk, sender->acked, sender->sample_us, &step, &payload)) {
			if (step.begins)
				call_restart(&one->flow);
			if (step.called) {
				payload.verdict = call_on_ack(&one->flow, &payload.ack);
				payload.called = 1;
			}
			flags = sender->flow.header.flags;
			onramp_shell_ack_after(&sender->flow, sk, &step, &payload);
			require_started(one, flags, &payload.ack);
		}
		if (may_start(sk))
			sender_grows(sender);
		else
			sender_sends(sender);
	}
}

static void comes_to(struct starting *one, u32 state)
{
	onramp_shell_state(&one->sender.flow, &one->sender.sk, state);
	one->sender.sk.state = state;
}

/* A reduction, which may be another in the same recovery, and the state that says what it was. */
static void reduce_by(struct starting *one, u32 state, u32 lost)
{
	struct sender *sender = &one->sender;
	struct sock *sk = &sender->sk;
	struct loss_payload payload;
	struct loss_step step;
	u32 before = sk->cwnd, phase = sender->flow.start.phase, fast = sender->flow.fast.phase;
	bool starting = sender->flow.header.flags & FLOW_SLOW_START;

	sk->lost += lost;
	step = onramp_shell_loss_before(&sender->flow, sk,
					(u32)max_u64((u64)sk->cwnd * one->beta_tenths / 10, MIN_WINDOW), &payload);
	if (step.called)
		payload.ssthresh = call_on_loss(&one->flow, &payload.ack, payload.base_ssthresh);
	onramp_shell_loss_after(&sender->flow, sk, step, &payload);
	require_window(one, &payload.ack, payload.ssthresh >= MIN_WINDOW, "a threshold below MIN_WINDOW after a loss");
	if (phase != START_OVER && sender->flow.start.end == START_RETREAT) {
		retreated++;
		require_window(one, &payload.ack, starting, "a retreat after slow start");
	}
	sk->prior_cwnd = before;
	set_ssthresh(sk, payload.ssthresh);
	comes_to(one, state);
	if (fast != FAST_LANDING && sender->flow.fast.phase == FAST_LANDING) {
		landed++;
		require_window(one, &payload.ack, starting, "a landing after slow start");
	}
	require_window(one, &payload.ack, sk->ssthresh >= MIN_WINDOW, "a threshold below MIN_WINDOW after a loss");
	if (state != STATE_LOSS)
		set_cwnd(sk, (u32)min_u64(sk->cwnd, sk->ssthresh));
}

/* All that is in flight is taken for lost. */
static void times_out(struct starting *one)
{
	if (one->sender.sk.state != STATE_LOSS)
		reduce_by(one, STATE_LOSS, one->sender.sk.in_flight);
	sender_restarts(&one->sender, 1);
}

static void recovers(struct starting *one, bool spurious)
{
	struct sock *sk = &one->sender.sk;

	if (sk->state < STATE_CWR)
		return;
	if (spurious)
		set_cwnd(sk, onramp_shell_undo(&one->sender.flow, sk, (u32)max_u64(sk->cwnd, sk->prior_cwnd)));
	comes_to(one, STATE_OPEN);
}

/* A receiver's window: mostly one of those that its autotuning has. */
static u32 take_window(struct input *input)
{
	u8 kind = take_byte(input);

	return kind < 16 ? (u32)take_number(input) : 65535U << kind % 15;
}

/* One step of a connection's life. Most are ACKs that a sender could see. */
static void step(struct starting *one, struct input *input)
{
	struct sock *sk = &one->sender.sk;
	u8 what = take_byte(input);

	if (what < 12) {
		if (sk->state < STATE_CWR)
			reduce_by(one, what & 1 ? STATE_RECOVERY : STATE_CWR, take_byte(input));
	} else if (what < 16) {
		times_out(one);
	} else if (what < 28) {
		recovers(one, what & 1);
	} else if (what < 30) {
		onramp_shell_idle(&one->sender.flow);
		sender_restarts(&one->sender, INITIAL_WINDOW);
	} else if (what < 40) {
		sk->receive_window = take_window(input);
	} else if (what < 44) {
		sk->min_rtt_us = (u32)take_number(input);
	} else if (what < 48) {
		sk->srtt_eighths_us = (u32)take_number(input);
	} else if (what < 52) {
		sk->lost += take_byte(input);
	} else if (what < 56) {
		sk->bytes_unsent = (u32)take_number(input);
	} else {
		acknowledge(one, take_arrival(input), what < 128 ? 1 + what % 64 : 1);
	}
}

static void begin(struct starting *one, struct input *input)
{
	struct shell_flow *flow = &one->sender.flow;
	struct sock *sk = &one->sender.sk;
	u8 kind = take_byte(input);
	u32 rtt_us;

	one->beta_tenths = kind & 1 ? 7 : 5;
	sk->receive_window = take_window(input);
	sk->bytes_unsent = kind & 4 ? 1U << 30 : (u32)take_number(input);
	flow->has_state = 0;
	flow->faster = row->faster;
	flow->start.phase = START_OVER;
	if (row->remembered && !(kind & 8 && row->faster)) {
		rtt_us = kind & 16 ? one->sender.rtt_us : (u32)take_within(input, 1, ~0U);
		start_remembers(&flow->start, take_within(input, 1, 1ULL << 40), rtt_us, row->remembered);
		flow->start.halvings = take_byte(input);
		if (kind & 32) {
			flow->start.claim_ns = 1;
			flow->start.late_us = sk->now_us + (u64)take_byte(input) * one->sender.rtt_us;
		}
	}
	/* A connection that begins has sent nothing, and may have a first window of its own. */
	if (kind & 64) {
		sk->bytes_sent = sk->bytes_acked = 0;
		onramp_shell_begin(flow, sk);
		require_window(
			one, &(struct ack){ .mss = sk->mss },
			sk->cwnd <= max_u64(INITIAL_WINDOW, min_u64(START_FIRST_BYTES_MAX / sk->mss, sk->cwnd_clamp)),
			"a first window that no receiver has");
	} else if (flow->start.phase != START_OVER) {
		/* It is known once the first window has been sent. */
		sk->bytes_sent += (u64)INITIAL_WINDOW * sk->mss;
		sk->bytes_outstanding = INITIAL_WINDOW * sk->mss;
		sk->in_flight = INITIAL_WINDOW;
		onramp_shell_begin(flow, sk);
	}
}

/* Whatever was in progress: a timeout ends it. */
static void end(struct starting *one)
{
	const struct shell_flow *flow = &one->sender.flow;

	recovers(one, false);
	times_out(one);
	require_window(one, &(struct ack){ 0 }, !(flow->header.flags & (FLOW_STARTS | FLOW_FASTER)),
		       "a start that a timeout does not end");
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input input = { data, size };
	u32 number = take_byte(&input) % onramp_algorithm_count;
	const struct algorithm_row *algorithm = &onramp_algorithms[number];
	struct starting one = {
		.flow = { .row = algorithm,
			  .traits = all_traits[number],
			  .reads = all_reads[number],
			  .traced = traced },
	};

	one.flow.state = calloc(1, algorithm->state_size);
	one.flow.other_state = calloc(1, algorithm->state_size);
	one.flow.params = calloc(algorithm->parameter_count ? algorithm->parameter_count : 1, sizeof(u64));
	if (!one.flow.state || !one.flow.other_state || !one.flow.params)
		abort();
	for (u32 i = 0; i < algorithm->parameter_count; i++)
		one.flow.params[i] = algorithm->parameters[i].def;
	sender_begin(&one.sender, &input, one.flow.traits);
	begin(&one, &input);
	call_restart(&one.flow);
	sender_sends(&one.sender);
	while (input.left)
		step(&one, &input);
	end(&one);
	free(one.flow.params);
	free(one.flow.state);
	free(one.flow.other_state);
	return 0;
}
