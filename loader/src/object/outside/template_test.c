/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Tests of newname.h: `onramp-lab build newname.h` runs them before it makes the object. */
#include "newname.h"
#include "onramp_test.h"

static const struct newname_params defaults = { NEWNAME_PARAMETERS(PARAMETER_DEFAULT) };

/* An ACK of a connection whose smallest RTT was 100 ms. */
static __always_inline struct ack ack_with(s32 rtt_us)
{
	return (struct ack){ .bytes_acked = 1, .bytes_sent = 10, .rtt_us = rtt_us, .min_rtt_us = 100000, .cwnd = 40 };
}

TEST(a_round_whose_rtt_has_risen_ends_slow_start)
{
	struct ack ack = ack_with(130000);
	struct verdict verdict = { 0 };
	struct newname state = { 0 };

	newname_on_ack(&state, &defaults, &ack, &verdict);
	CHECK(verdict.outcome == OUTCOME_EXIT);
	CHECK(verdict.ssthresh == 40);
}

TEST(a_round_whose_rtt_has_not_risen_goes_on)
{
	struct ack ack = ack_with(120000);
	struct verdict verdict = { 0 };
	struct newname state = { 0 };

	newname_on_ack(&state, &defaults, &ack, &verdict);
	CHECK(verdict.outcome == OUTCOME_BELOW_THRESHOLD);
	CHECK(verdict.ssthresh == 0);
}
