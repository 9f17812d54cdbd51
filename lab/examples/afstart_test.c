/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Tests of afstart.h: `onramp-lab build afstart.h` runs them before it makes the object. */
#include "afstart.h"
#include "onramp_test.h"

static const struct afstart_params defaults = { AFSTART_PARAMETERS(PARAMETER_DEFAULT) };

#define MSS 1000
#define RTT_US 100000

/*
 * The ACKs of a round of 40 segments, one each `apart_us`, of data of which each segment left `left_us` after the one before: the verdict is that on
 * the ACK after it.
 */
static void round_of(struct afstart *state, u32 apart_us, u32 left_us, struct verdict *verdict)
{
	for (u32 at = 1; at <= 42; at++) {
		struct ack ack = { .now_us = 1000000 + at * apart_us,
				   .bytes_acked = at * MSS,
				   .min_rtt_us = RTT_US,
				   .rtt_us = (s32)(RTT_US + at * (apart_us - left_us)),
				   .cwnd = 40,
				   .mss = MSS,
				   .acked = 1,
				   .ssthresh = NO_THRESHOLD,
				   .bytes_outstanding = 40 * MSS,
				   .receive_window = 1 << 20 };

		*verdict = (struct verdict){ 0 };
		afstart_on_ack(state, &defaults, &ack, verdict);
	}
}

/* A segment each ms is 1 MB/s, of which 100 ms are 100 segments. */
TEST(acks_further_apart_than_what_left_show_what_is_available)
{
	struct afstart state = { 0 };
	struct verdict verdict;

	round_of(&state, 1000, 500, &verdict);
	CHECK(state.rate > 990000 && state.rate < 1010000);
	CHECK(state.target > 98 && state.target < 102);
}

TEST(the_window_goes_there_paced_and_within_the_receivers)
{
	struct afstart state = { .target = 100, .rate = 1000000 };
	struct ack ack = { .cwnd = 40, .mss = MSS, .acked = 1, .ssthresh = NO_THRESHOLD, .receive_window = 60500 };
	struct verdict verdict = { 0 };

	afstart_on_ack(&state, &defaults, &ack, &verdict);
	CHECK(verdict.cwnd == 60 && verdict.pacing_rate == 1000000 && !verdict.ssthresh);
	ack.cwnd = 100;
	verdict = (struct verdict){ 0 };
	afstart_on_ack(&state, &defaults, &ack, &verdict);
	CHECK(verdict.outcome == OUTCOME_EXIT && verdict.ssthresh == 100);
}

TEST(acks_as_far_apart_as_what_left_show_nothing)
{
	struct afstart state = { 0 };
	struct verdict verdict;

	round_of(&state, 1000, 1000, &verdict);
	CHECK(!state.rate && !verdict.cwnd && !verdict.ssthresh && !verdict.pacing_rate);
}
