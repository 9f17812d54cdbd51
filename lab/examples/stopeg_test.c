/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Tests of stopeg.h: `onramp-lab build stopeg.h` runs them before it makes the object. */
#include "stopeg.h"
#include "onramp_test.h"

static const struct stopeg_params defaults = { STOPEG_PARAMETERS(PARAMETER_DEFAULT) };

/* A path of 1000 bytes per ms and 100 ms. */
#define RATE 1000
#define RTT_MS 100
#define BDP (RATE * RTT_MS)

/* An ACK at this time, with so much in flight. */
static __always_inline struct ack ack_at(u64 ms, u32 in_flight)
{
	return (struct ack){ .now_us = 1000 * ms,
			     .bytes_acked = RATE * ms,
			     .bytes_sent = RATE * ms + in_flight,
			     .bytes_outstanding = in_flight,
			     .min_rtt_us = 1000 * RTT_MS,
			     .cwnd = 70 };
}

/* An ACK each ms for five RTTs, with so much in flight: the exits. */
static u32 exits_of(struct stopeg *state, u32 in_flight)
{
	u32 exits = 0;

	for (u64 ms = 1; ms <= 5 * RTT_MS; ms++) {
		struct ack ack = ack_at(ms, in_flight);
		struct verdict verdict = { 0 };

		stopeg_on_ack(state, &defaults, &ack, &verdict);
		exits += verdict.outcome == OUTCOME_EXIT && verdict.ssthresh == 70;
	}
	return exits;
}

TEST(a_full_path_without_a_queue_has_half_on_its_way_forward)
{
	struct stopeg state = { 0 };

	CHECK(exits_of(&state, BDP) == 0);
	CHECK(state.share_permille >= 480 && state.share_permille <= 520);
}

TEST(a_queue_is_on_its_way_forward_and_ends_slow_start)
{
	struct stopeg state = { 0 };

	CHECK(exits_of(&state, BDP * 3 / 2) > 0);
	CHECK(state.share_permille >= 640 && state.share_permille <= 690);
}

TEST(a_silence_of_two_round_trips_begins_anew)
{
	struct stopeg state = { 0 };
	struct ack ack = ack_at(10 * RTT_MS, BDP);
	struct verdict verdict = { 0 };

	exits_of(&state, BDP);
	CHECK(state.bins > 0 && state.rounds > 0);
	stopeg_on_ack(&state, &defaults, &ack, &verdict);
	CHECK(verdict.outcome != OUTCOME_EXIT && state.bins == 0 && state.rounds == 0);
}

TEST(what_the_application_limits_begins_anew)
{
	struct stopeg state = { 0 };
	struct ack ack = ack_at(5 * RTT_MS + 1, BDP * 3 / 2);
	struct verdict verdict = { 0 };

	exits_of(&state, BDP);
	ack.flags = ACK_APP_LIMITED;
	stopeg_on_ack(&state, &defaults, &ack, &verdict);
	CHECK(verdict.outcome == OUTCOME_APP_LIMITED && state.bin_us == 0);
}
