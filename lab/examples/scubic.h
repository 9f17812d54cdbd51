/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * scubic: a connection to a known peer starts with all of the window that an earlier one has measured. Here to compare with
 * Careful Resume (bpf/start/resume.h), which halves, ages, shares and retreats.
 *
 * Source: Guo and Lee: Stateful-TCP - A New Approach to Accelerate TCP Slow-Start, IEEE Access 8 (2020),
 * doi 10.1109/ACCESS.2020.3034129: S-Cubic; and its authors' code (mclab-cuhk/Stateful-TCP, v1.0). Of these:
 *
 *  - The window at the start is the rate that the last connection to the peer has measured, by its minimum RTT, if that is more
 *    than ten segments. It is paced at that rate until ACKs come. Then slow start goes on, with HyStart.
 *  - An entry does not age. Each connection uses all of it, whatever others do, and whatever RTT it finds. A loss is CUBIC's affair.
 *
 * Differs:
 *
 *  1. The entry is a parameter: nothing is learned.
 *  2. The window stays within the receiver's (jump.h). Of the first flight no more leaves than the host gives, by a rule, a route, or
 *     --start window, which is paced; the rest with the first ACK, where the code takes the window down to the flight.
 *  3. The rate is kept for the round trip after that.
 */
#ifndef ONRAMP_SCUBIC_H
#define ONRAMP_SCUBIC_H

#include "jump.h"

#define SCUBIC_ABOUT "starts with all of a remembered window"
#define SCUBIC_SOURCE "Guo and Lee 2020"
#define SCUBIC_CONTROL "onramp_scubic"

#define SCUBIC_PARAMETERS(X)                                                                                           \
	HYSTART_PARAMETERS(X)                                                                                          \
	X(rate_kbps, "kbit/s", 0, 0, 100000000, "", "remembered rate; 0: nothing is remembered")                       \
	X(rtt_us, "us", 0, 0, 10000000, "", "remembered minimum RTT")

#define SCUBIC_OUTCOMES(X) HYSTART_OUTCOMES(X)
#define SCUBIC_EXPORTS(X)                                                                                              \
	X(scubic, jump.target, "segments", 1, "window that it starts with")                                            \
	X(scubic, jump.phase, "", 1, "0 before, 1 begun, 2 over")

#define SCUBIC_TRACK(X) TRACK_WINDOW(X, "start", state->jump.target)
#define SCUBIC_PICTURE(GAUGE, BARS, PHASE)

#define SCUBIC_TRAITS JUMP_TRAITS
#define SCUBIC_READS JUMP_READS

struct scubic {
	struct jump jump;
};

struct scubic_params {
	SCUBIC_PARAMETERS(PARAMETER_FIELD)
};

/* Only the start of a connection is from memory. */
static __always_inline void scubic_restart(struct scubic *state)
{
	if (state->jump.hystart.rounds)
		state->jump.phase = JUMP_OVER;
	hystart_restart(&state->jump.hystart);
}

static __always_inline void scubic_on_ack(struct scubic *state, const struct scubic_params *params,
					  const struct ack *ack, struct verdict *verdict)
{
	u64 rate = params->rate_kbps * 125;

	if (state->jump.phase == JUMP_BEFORE)
		jump_begin(&state->jump, rate, jump_target(rate, params->rtt_us, ack), ack);
	/* HyStart's parameters come first. */
	jump_on_ack(&state->jump, (const struct hystart_params *)params, ack, verdict);
}

LOSS_LEFT_TO_BASE(scubic)

#endif
