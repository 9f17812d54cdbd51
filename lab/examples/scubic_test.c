/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Tests of scubic.h: `onramp-lab build scubic.h` runs them before it makes the object. */
#include "scubic.h"
#include "onramp_test.h"

/* 8 Mbit/s and 100 ms hold 100 segments of 1000 bytes. */
#define MSS 1000
#define REMEMBERS { HYSTART_PARAMETERS(PARAMETER_DEFAULT).rate_kbps = 8000, .rtt_us = 100000 }

/* The first ACK after a first window of ten. */
static __always_inline struct ack first_ack(u32 receive_window)
{
	return (struct ack){ .now_us = 1000000,
			     .bytes_acked = 2 * MSS,
			     .bytes_sent = 10 * MSS,
			     .bytes_outstanding = 8 * MSS,
			     .rtt_us = 100000,
			     .min_rtt_us = 100000,
			     .acked = 2,
			     .cwnd = 10,
			     .in_flight = 8,
			     .mss = MSS,
			     .ssthresh = NO_THRESHOLD,
			     .receive_window = receive_window };
}

TEST(the_first_ack_has_all_of_the_remembered_window_paced)
{
	static const struct scubic_params params = REMEMBERS;
	struct ack ack = first_ack(1 << 20);
	struct verdict verdict = { 0 };
	struct scubic state = { 0 };

	scubic_on_ack(&state, &params, &ack, &verdict);
	CHECK(verdict.cwnd == 100 && verdict.pacing_rate == 1000000 && !verdict.ssthresh);
}

TEST(the_window_stays_within_the_receivers_and_follows_it)
{
	static const struct scubic_params params = REMEMBERS;
	struct ack ack = first_ack(64500);
	struct verdict verdict = { 0 };
	struct scubic state = { 0 };

	scubic_on_ack(&state, &params, &ack, &verdict);
	CHECK(verdict.cwnd == 64);
	ack.receive_window = 90000;
	ack.cwnd = 66;
	verdict = (struct verdict){ 0 };
	scubic_on_ack(&state, &params, &ack, &verdict);
	CHECK(verdict.cwnd == 90);
}

TEST(after_a_round_trip_it_only_doubles)
{
	static const struct scubic_params params = REMEMBERS;
	struct ack ack = first_ack(64500);
	struct verdict verdict = { 0 };
	struct scubic state = { 0 };

	scubic_on_ack(&state, &params, &ack, &verdict);
	ack.bytes_acked = 11 * MSS;
	ack.now_us += 100000;
	ack.receive_window = 1 << 20;
	verdict = (struct verdict){ 0 };
	scubic_on_ack(&state, &params, &ack, &verdict);
	CHECK(!verdict.cwnd && !verdict.pacing_rate && state.jump.phase == JUMP_OVER);
}

TEST(nothing_remembered_is_hystart)
{
	static const struct scubic_params params = { HYSTART_PARAMETERS(PARAMETER_DEFAULT) };
	struct ack ack = first_ack(1 << 20);
	struct verdict verdict = { 0 };
	struct scubic state = { 0 };

	scubic_on_ack(&state, &params, &ack, &verdict);
	CHECK(!verdict.cwnd && !verdict.pacing_rate && verdict.outcome == HYSTART_SMALL_WINDOW);
}
