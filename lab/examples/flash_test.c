/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Tests of flash.h: `onramp-lab build flash.h` runs them before it makes the object. */
#include "flash.h"
#include "onramp_test.h"

static const struct flash_params defaults = { FLASH_PARAMETERS(PARAMETER_DEFAULT) };

#define MSS 1000

/* An ACK for each second segment of a first window of ten, 2 ms apart: 1 MB/s. `verdict` is that on the last. */
static void first_window(struct flash *state, struct verdict *verdict)
{
	for (u32 at = 1; at <= 5; at++) {
		struct ack ack = { .now_us = 1000000 + 2000 * at,
				   .bytes_acked = 2 * MSS * at,
				   .bytes_sent = 10 * MSS,
				   .bytes_outstanding = 10 * MSS - 2 * MSS * at,
				   .rtt_us = 100000,
				   .min_rtt_us = 100000,
				   .acked = 2,
				   .cwnd = 8 + 2 * at,
				   .mss = MSS,
				   .ssthresh = NO_THRESHOLD,
				   .receive_window = 1 << 20 };

		*verdict = (struct verdict){ 0 };
		flash_on_ack(state, &defaults, &ack, verdict);
	}
}

TEST(the_last_ack_of_the_first_window_has_what_their_rate_holds)
{
	struct verdict verdict;
	struct flash state = { 0 };

	first_window(&state, &verdict);
	CHECK(verdict.cwnd == 100 && verdict.pacing_rate == 1000000 && state.jump.phase == JUMP_BEGUN);
}

TEST(a_first_window_whose_end_is_lost_shows_no_rate)
{
	struct ack ack = { .now_us = 1100000,
			   .bytes_acked = 12 * MSS,
			   .bytes_sent = 20 * MSS,
			   .rtt_us = 100000,
			   .min_rtt_us = 100000,
			   .cwnd = 18,
			   .mss = MSS,
			   .ssthresh = NO_THRESHOLD };
	struct verdict verdict = { 0 };
	struct flash state = { .acks = 4, .first_us = 1002000, .first_acked = 2 * MSS, .first_end = 10 * MSS };

	flash_on_ack(&state, &defaults, &ack, &verdict);
	CHECK(!verdict.cwnd && !verdict.pacing_rate && state.jump.phase == JUMP_OVER);
}

TEST(later_slow_starts_have_no_first_window)
{
	struct verdict verdict;
	struct flash state = { 0 };

	first_window(&state, &verdict);
	flash_restart(&state);
	first_window(&state, &verdict);
	CHECK(!verdict.cwnd && !verdict.pacing_rate);
}
