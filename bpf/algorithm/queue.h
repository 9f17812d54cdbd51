/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Whether a queue stands: the RTTs with which a round begins, beside the minimum RTT. In slow start a round begins after
 * a pause, with an empty queue, until the window is more than the path holds; from then on not even the first ACKs of
 * a round come back after the minimum RTT.
 *
 *   - The minimum of a round's first sixteenth, of sixteen samples at least, is judged: once in each round.
 *   - It is risen if it is above the minimum RTT by a quarter of that, and by the longest gap between ACKs.
 *
 * The delay rule of HyStart (Ha and Rhee 2011) and RFC 9406, with more samples, and a threshold that knows how unevenly
 * ACKs come.
 *
 * Use: embed a struct queue, queue_restart it when slow start begins, queue_on_ack with every ACK; `risen` counts the
 * rounds in a row that were judged so.
 */
#ifndef ONRAMP_QUEUE_H
#define ONRAMP_QUEUE_H

#include "algorithm.h"

/* What of a round is judged: a part, and samples. */
#define QUEUE_PART 16
#define QUEUE_SAMPLES 16
/* Of the minimum RTT that must be added, and more than the clock's noise. */
#define QUEUE_RISE_PART 4
#define QUEUE_NOISE_US 100

struct queue {
	u32 round_end;	 /* the round ends when more are acknowledged, modulo 2^32 */
	u32 round_bytes; /* outstanding when it began */
	u32 least_us;	 /* RTT, of the samples of the round */
	u32 samples;	 /* of the round; all ones: it has been judged */
	u32 risen;	 /* rounds in a row that began with a queue */
	u32 begun;	 /* whether there is a round */
};

#define QUEUE_JUDGED 0xffffffffU

static __always_inline void queue_restart(struct queue *queue)
{
	queue->begun = 0;
	queue->risen = 0;
}

/* One ACK, where the longest gap between ACKs has been so long. */
static __always_inline void queue_on_ack(struct queue *queue, const struct ack *ack, u32 gap_us)
{
	u32 left = queue->round_end - (u32)ack->bytes_acked;
	u64 rise_us = max_u64(ack->min_rtt_us / QUEUE_RISE_PART, gap_us);

	if (!queue->begun || (s32)left < 0) {
		queue->begun = 1;
		queue->round_bytes = ack->bytes_outstanding;
		queue->round_end = (u32)ack->bytes_acked + ack->bytes_outstanding;
		queue->least_us = ~0U;
		queue->samples = 0;
		left = queue->round_bytes;
	}
	if (queue->samples == QUEUE_JUDGED || ack->rtt_us < 0)
		return;
	queue->least_us = (u32)min_u64(queue->least_us, (u32)ack->rtt_us);
	queue->samples++;
	if (queue->samples < QUEUE_SAMPLES || left > queue->round_bytes - queue->round_bytes / QUEUE_PART)
		return;
	queue->samples = QUEUE_JUDGED;
	if (queue->least_us > (u64)ack->min_rtt_us + rise_us + QUEUE_NOISE_US)
		queue->risen++;
	else
		queue->risen = 0;
}

#endif
