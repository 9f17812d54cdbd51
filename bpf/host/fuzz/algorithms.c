/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Fuzz target (libFuzzer): the algorithm that ONRAMP_FUZZ_NAME names, with parameters, ACKs, losses, restarts and
 * changes of parameters that the input chooses. Without a name it prints the names and ends. ONRAMP_FUZZ_TRACE=1 shows
 * every call.
 */
#include "check.h"
#include "named.h"
#include "sender.h"

static const struct algorithm_row *row;
static u32 traits, reads;
static bool traced;

/* What has been reached, and which of the algorithm's own outcomes never. */
static void report(void)
{
	printf("%s reached", row->name);
	for (u32 i = 0; i < OUTCOME_MAX; i++) {
		if (outcomes_seen[i])
			printf(" %s", row->outcomes[i].name);
	}
	for (u32 i = OUTCOME_OWN; i < OUTCOME_MAX; i++) {
		if (row->outcomes[i].name && !outcomes_seen[i])
			printf(", never %s", row->outcomes[i].name);
	}
	printf("\n");
}

static const char *name_of(size_t number)
{
	return onramp_algorithms[number].name;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	size_t number = named(name_of, onramp_algorithm_count, "algorithm of the registry");

	(void)argc;
	(void)argv;
	traced = getenv("ONRAMP_FUZZ_TRACE");
	row = &onramp_algorithms[number];
	traits = all_traits[number];
	reads = all_reads[number];
	atexit(report);
	return 0;
}

static void set_parameter(struct flow *flow, u32 index, struct input *input)
{
	const struct parameter_row *parameter = &flow->row->parameters[index];

	flow->params[index] = take_within(input, parameter->min, parameter->max);
}

static void tune(struct flow *flow, struct input *input)
{
	if (!flow->row->parameter_count)
		return;
	set_parameter(flow, take_byte(input) % flow->row->parameter_count, input);
	if (flow->traced)
		show_parameters(flow);
}

/* The defaults, but for the parameters whose bits are set in the first two bytes. */
static void set_parameters(struct flow *flow, struct input *input)
{
	u32 set = take_byte(input) | (u32)take_byte(input) << 8;

	for (u32 i = 0; i < flow->row->parameter_count; i++) {
		flow->params[i] = flow->row->parameters[i].def;
		if (set >> i & 1)
			set_parameter(flow, i, input);
	}
	if (flow->traced)
		show_parameters(flow);
}

/* An ACK whose every field may be anything that its type holds; a segment has a byte at least, a window a segment. */
static void take_wild_ack(struct ack *ack, struct input *input)
{
	*ack = (struct ack){
		.now_us = take_number(input),
		.bytes_acked = take_number(input),
		.bytes_sent = take_number(input),
		.pacing_rate = take_number(input),
		.bytes_outstanding = (u32)take_number(input),
		.delivered = (u32)take_number(input),
		.acked = (u32)take_number(input),
		.rtt_us = (s32)take_number(input),
		.smoothed_rtt_us = (u32)take_number(input),
		.min_rtt_us = (u32)take_number(input),
		.cwnd = (u32)take_within(input, 1, ~0U),
		.ssthresh = (u32)take_number(input),
		.in_flight = (u32)take_number(input),
		.mss = (u32)take_within(input, 1, ~0U),
		.gso_max_size = (u32)take_number(input),
		.flags = (u32)take_number(input),
		.receiver_clock = (u32)take_number(input),
	};
}

/* After the shell has applied what came of an ACK. */
static void require_applied(const struct flow *flow, const struct sock *sk, const struct ack_payload *payload)
{
#define REQUIRE(condition, what) require(condition, flow, &payload->ack, &payload->verdict, what)
	REQUIRE(sk->cwnd <= max_u64(payload->ack.cwnd, MIN_WINDOW), "the shell raises the window");
	REQUIRE(sk->cwnd >= min_u64(payload->ack.cwnd, MIN_WINDOW), "a window below MIN_WINDOW");
	REQUIRE(sk->ssthresh >= MIN_WINDOW, "a threshold below MIN_WINDOW");
	REQUIRE(sk->paced || !payload->verdict.pacing_rate, "a pacing rate, and nothing paces");
#undef REQUIRE
}

/* Algorithms with TRAIT_SLEEPS. */
#define SLEEPERS(X) X(plain) X(fixed) X(search)
#define SLEEPS_UNTIL(alg)                                                                                              \
	if (!strcmp(flow->row->name, #alg))                                                                            \
		return alg##_sleeps_until(flow->state, (const struct alg##_params *)flow->params, &payload->verdict);

static u64 sleeps_until(const struct flow *flow, const struct ack_payload *payload)
{
	if (!(flow->traits & TRAIT_SLEEPS))
		return 0;
	SLEEPERS(SLEEPS_UNTIL)
	require(false, flow, &payload->ack, &payload->verdict, "TRAIT_SLEEPS, and not among SLEEPERS");
	return 0;
}

/* Algorithms with TRAIT_DOZES. */
#define DOZERS(X) X(ramp)
#define DOZE_OF(alg)                                                                                                   \
	if (!strcmp(flow->row->name, #alg))                                                                            \
		return &((struct alg *)state)->doze;

static struct doze *doze_of(const struct flow *flow, void *state)
{
	DOZERS(DOZE_OF)
	require(false, flow, 0, 0, "TRAIT_DOZES, and not among DOZERS");
	return 0;
}

static void falls_asleep(const struct flow *flow, struct sender *sender, const struct ack_payload *payload)
{
	sender->sleep.uncounted = payload->verdict.outcome;
	if (flow->traits & TRAIT_DOZES)
		sleep_keeps(&sender->sleep, &sender->dozing, doze_of(flow, flow->state));
	else
		sender->sleep.until = sleeps_until(flow, payload);
}

/*
 * An ACK that is slept through has taken its way all the same. The algorithm that sleeps has the state from before, but for what the
 * shell has kept of a doze. `changed`: socket or flow.
 */
static void require_slept(const struct flow *flow, const struct sender *sender, bool called, bool changed,
			  const struct ack_payload *payload)
{
#define REQUIRE(condition, what) require(condition, flow, &payload->ack, called ? &payload->verdict : 0, what)
	if (flow->traits & TRAIT_DOZES)
		*doze_of(flow, flow->asleep) = sleep_doze(&sender->sleep, &sender->dozing);
	REQUIRE(!memcmp(flow->asleep, flow->state, flow->row->state_size), "a state that changes asleep");
	REQUIRE(!changed, "a shell that acts asleep");
	REQUIRE(!called || payload->verdict.outcome == sender->sleep.uncounted, "another outcome asleep");
#undef REQUIRE
}

/* Slow start is left by a loss, which may prove spurious, or begins anew by a timeout or after an idle period. */
static void interrupt(struct flow *flow, struct sender *sender, u8 kind, bool spurious)
{
	struct shell shell = shell_of(&sender->flow, &sender->sk);
	struct sock *sk = &sender->sk;
	struct loss_payload payload;
	struct undo_payload undone;
	struct loss_step step;

	if (kind < 2) {
		step = loss_before(&shell, (u32)max_u64(sk->cwnd * 7ULL / 10, MIN_WINDOW), &payload);
		if (step.called)
			payload.ssthresh = call_on_loss(flow, &payload.ack, payload.base_ssthresh);
		loss_after(&shell, step, &payload);
		state_changes(&shell, kind ? STATE_LOSS : STATE_RECOVERY);
		sk->prior_cwnd = sk->cwnd;
		set_ssthresh(sk, payload.ssthresh);
		set_cwnd(sk, (u32)min_u64(payload.ssthresh, sk->cwnd_clamp));
		if (spurious) {
			loss_was_spurious(&shell, (u32)max_u64(sk->cwnd, sk->prior_cwnd), &undone);
			set_cwnd(sk, undone.restored);
		}
		state_changes(&shell, STATE_OPEN);
	}
	if (kind > 0)
		sender_restarts(sender, kind == 1 ? 1 : INITIAL_WINDOW);
}

/* So many ACKs that arrive alike. */
static void acknowledge(struct flow *flow, struct sender *sender, struct arrival arrival, u32 count)
{
	struct shell shell = shell_of(&sender->flow, &sender->sk);

	for (u32 i = 0; i < count; i++) {
		struct ack_payload payload = { 0 };
		struct sender before;
		struct ack_step step;
		bool asleep;

		sender_is_acknowledged(sender, arrival);
		asleep = sleep_lasts(&sender->sk, &sender->sleep, &sender->dozing, sender->sample_us, flow->traits);
		if (!asleep)
			sender->sleep.until = 0;
		memcpy(&before, sender, sizeof(before));
		memcpy(flow->asleep, flow->state, flow->row->state_size);
		ack_arrives(&sender->sk, flow->traits, false, &step);
		if (step.called) {
			ack_before(&shell, sender->acked, sender->sample_us, &step, &payload);
			if (step.begins)
				call_restart(flow);
			if (step.called) {
				payload.verdict = call_on_ack(flow, &payload.ack);
				payload.called = 1;
			}
			ack_after(&shell, &step, &payload);
			require_applied(flow, &sender->sk, &payload);
		}
		if (asleep) {
			require_slept(flow, sender, payload.called, memcmp(&before, sender, sizeof(before)), &payload);
		} else if (may_sleep(&shell, &step, &payload)) {
			falls_asleep(flow, sender, &payload);
		}
		sender_grows(sender);
	}
}

/* One step of a flow's life. Most are ACKs that a sender could see. */
static void step(struct flow *flow, struct sender *sender, struct input *input)
{
	struct ack wild;
	u8 what = take_byte(input);
	u32 count;

	/* But for ACKs, all of it wakes. */
	if (what <= 32)
		sender->sleep.until = 0;
	if (what < 16) {
		tune(flow, input);
	} else if (what < 24) {
		interrupt(flow, sender, what % 3, what & 4);
	} else if (what < 32) {
		take_wild_ack(&wild, input);
		call_on_ack(flow, &wild);
	} else if (what == 32) {
		take_wild_ack(&wild, input);
		call_on_loss(flow, &wild, (u32)take_within(input, MIN_WINDOW, ~0U));
	} else {
		count = what < 96 ? 1 + take_byte(input) % 64 : 1;
		acknowledge(flow, sender, take_arrival(input), count);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct flow flow = { .row = row, .traits = traits, .reads = reads, .traced = traced };
	struct input input = { data, size };
	struct sender sender;

	flow.state = calloc(1, row->state_size);
	flow.other_state = calloc(1, row->state_size);
	flow.asleep = calloc(1, row->state_size);
	flow.params = calloc(row->parameter_count ? row->parameter_count : 1, sizeof(u64));
	if (!flow.state || !flow.other_state || !flow.asleep || !flow.params)
		abort();
	set_parameters(&flow, &input);
	sender_begin(&sender, &input, traits);
	sender_sends(&sender);
	call_restart(&flow);
	while (input.left)
		step(&flow, &sender, &input);
	free(flow.params);
	free(flow.state);
	free(flow.other_state);
	free(flow.asleep);
	return 0;
}
