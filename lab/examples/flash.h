/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * flash: the ACKs of the first window show the rate, and the second round trip sends all that it holds.
 *
 * Source: Guo and Lee: TCP-FLASH - A Fast Reacting TCP for Modern Networks, IEEE Access (2021), by its authors' code
 * (mclab-cuhk/TCP-FLASH, v1.0); its text could not be had. Of the code:
 *
 *  - The rate is what the ACKs of the first window acknowledge after the first of them, over the time that they take. It counts once
 *    all of that window is acknowledged, by three ACKs at least.
 *  - The window is that rate by the minimum RTT, if that is more: at most 1,000 segments. It is paced at that rate for a round trip. Then
 *    CUBIC's slow start goes on, with HyStart. Nothing is remembered from one connection to the next.
 *
 * Differs:
 *
 *  1. The window stays within the receiver's (jump.h).
 *  2. If the end of the first window is lost, there is no rate; the code leaves out the longest gap then.
 *  3. Rates that are measured later, which the code keeps but does not use, are not.
 */
#ifndef ONRAMP_FLASH_H
#define ONRAMP_FLASH_H

#include "jump.h"

#define FLASH_ABOUT "goes to the rate of the first window's ACKs"
#define FLASH_SOURCE "Guo and Lee 2021, by their code"
#define FLASH_CONTROL "onramp_flash"

#define FLASH_PARAMETERS(X)                                                                                            \
	HYSTART_PARAMETERS(X)                                                                                          \
	X(most_segments, "segments", 1000, 10, 1000000, "", "the most that the window goes to")

#define FLASH_OUTCOMES(X) HYSTART_OUTCOMES(X)
#define FLASH_EXPORTS(X)                                                                                               \
	X(flash, jump.target, "segments", 1, "window that it goes to")                                                 \
	X(flash, jump.phase, "", 1, "0 before, 1 begun, 2 over")

#define FLASH_TRACK(X) TRACK_WINDOW(X, "second round trip", state->jump.target)
#define FLASH_PICTURE(GAUGE, BARS, PHASE)

#define FLASH_TRAITS JUMP_TRAITS
#define FLASH_READS (JUMP_READS | READS(min_rtt_us))

/* ACKs that make a rate. */
#define FLASH_ACKS_MIN 3

struct flash {
	struct jump jump;
	u64 first_us;	 /* when the first ACK came */
	u32 first_acked; /* bytes, modulo 2^32 */
	u32 first_end;	 /* of the first window, bytes sent modulo 2^32 */
	u32 acks;
	u32 unused;
};

struct flash_params {
	FLASH_PARAMETERS(PARAMETER_FIELD)
};

/* Only the start of a connection is by its first window. */
static __always_inline void flash_restart(struct flash *state)
{
	if (state->acks)
		state->jump.phase = JUMP_OVER;
	hystart_restart(&state->jump.hystart);
}

/* An ACK of the first window; with the last of them the jump begins. */
static __always_inline void flash_first_window(struct flash *state, const struct flash_params *params,
					       const struct ack *ack)
{
	u64 took_us = ack->now_us - state->first_us, rate;
	u32 bytes = (u32)ack->bytes_acked - state->first_acked;

	if (!state->acks++) {
		state->first_us = ack->now_us;
		state->first_acked = (u32)ack->bytes_acked;
		state->first_end = (u32)ack->bytes_sent;
		return;
	}
	if ((s32)((u32)ack->bytes_acked - state->first_end) < 0)
		return;
	state->jump.phase = JUMP_OVER;
	if ((u32)ack->bytes_acked != state->first_end || state->acks < FLASH_ACKS_MIN || !took_us)
		return;
	rate = (u64)bytes * 1000000 / took_us;
	jump_begin(&state->jump, rate, (u32)min_u64(jump_target(rate, ack->min_rtt_us, ack), params->most_segments),
		   ack);
}

static __always_inline void flash_on_ack(struct flash *state, const struct flash_params *params, const struct ack *ack,
					 struct verdict *verdict)
{
	if (state->jump.phase == JUMP_BEFORE)
		flash_first_window(state, params, ack);
	/* HyStart's parameters come first. */
	jump_on_ack(&state->jump, (const struct hystart_params *)params, ack, verdict);
}

LOSS_LEFT_TO_BASE(flash)

#endif
