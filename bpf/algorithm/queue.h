/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Whether a queue stands: the RTTs with which a round begins, compared with that of the path without a queue. In slow start a
 * round begins after a pause, with an empty queue, until the window is more than the path holds; from then on not even
 * the first ACKs of a round come back sooner than the queue lets them.
 *
 *   - The minimum of a round's first sixteenth, of sixteen samples at least, is evaluated: once in each round. No more than
 *     twice as many are taken. Where a receiver acknowledges bursts as one there are fewer: four of the first half of a large
 *     round will do.
 *   - Where ACKs pause, the bottleneck had nothing to send for as long as that, less what the segment after the pause waited in
 *     its queue: its RTT above that of the path. A link that stands still, as radio links do, and ACKs that come in bursts
 *     pause as well, but their segments have waited. Where it had nothing to send for an eighth of the RTT of the path, the
 *     queue was empty: it is the RTT of the path now (twice the minimum RTT at most), which a handover or a path that opens
 *     slowly may have raised.
 *   - Where packets are paced there are no such pauses. But a queue grows with what is sent: what an eighth of the window takes to
 *     be served raises the RTT by no more than an eighth. Where it rises by a quarter from one ACK to the next, and stays there,
 *     the path has become longer; from no queue, or it would not show.
 *   - Else it is risen if it is above the RTT of the path by a quarter of that.
 *   - What an ACK has waited on the way back is no part of it, as far as that is known.
 *
 * The delay rule of HyStart (Ha and Rhee 2011) and RFC 9406, with more samples, a threshold that is a part of the RTT, and a
 * base that moves with the path.
 *
 * Use: embed a struct queue, queue_restart it when slow start begins, queue_wants with every ACK that is looked at, queue_add where
 * that wants it, queue_evaluate where that asks for it; `risen` counts the rounds in a row with that result, queue_base is the
 * RTT of the path. queue_dozes says for how long none of it can change (doze.h).
 */
#ifndef ONRAMP_QUEUE_H
#define ONRAMP_QUEUE_H

#include "doze.h"

#define QUEUE_READS (DOZE_READS | READS(min_rtt_us) | READS(mss) | READS(acked) | READS(bytes_outstanding))

/* What of a round is evaluated: a fraction, and samples. */
#define QUEUE_PART 16
#define QUEUE_SAMPLES 16
/* Where ACKs stand for many segments each: of rounds of so many segments, half of the round and these samples suffice. */
#define QUEUE_LARGE 64
#define QUEUE_FEW 4
/* Nothing to send for this part of the RTT: no queue; what the RTT of the path may then be, in minimum RTTs. */
#define QUEUE_IDLE_PART 8
#define QUEUE_BASE_MOST 2
/* Of what is outstanding: no more may have been acknowledged for its RTT to have risen otherwise than by a queue. */
#define QUEUE_STEP_PART 8
/* Of the RTT of the path that must be added, and more than the clock's noise. */
#define QUEUE_RISE_PART 4
#define QUEUE_NOISE_US 100

struct queue {
	u32 round_end;	 /* as in round.h */
	u32 round_bytes; /* outstanding when it began */
	u32 least_us;	 /* RTT, of the samples of the round */
	u32 samples;	 /* of the round; all ones: it has been evaluated */
	u32 risen;	 /* rounds in a row that began with a queue */
	u32 base_us;	 /* RTT of the path when ACKs had paused last; 0: not yet */
	u32 idle_us;	 /* longest that the bottleneck had nothing to send since a round was evaluated last */
	u32 begun;	 /* whether there is a round */
	u32 step_us;	 /* least since the path became longer; 0: it has not since a round was evaluated last */
};

#define QUEUE_EVALUATED 0xffffffffU

static __always_inline void queue_restart(struct queue *queue)
{
	queue->begun = 0;
	queue->risen = 0;
	queue->base_us = 0;
	queue->idle_us = 0;
	queue->step_us = 0;
}

/* RTT of the path without a queue, as far as it is known. */
static __always_inline u32 queue_base(const struct queue *queue, const struct ack *ack)
{
	return queue->base_us ? queue->base_us : ack->min_rtt_us;
}

/* Above which RTT a queue stands, on a path of this RTT without one. */
static __always_inline u64 queue_limit(u64 base_us)
{
	return base_us + base_us / QUEUE_RISE_PART + QUEUE_NOISE_US;
}

/* Evaluates the RTT with which the round began. */
static __always_inline void queue_evaluate(struct queue *queue, const struct ack *ack)
{
	u64 base_us = queue_base(queue, ack);
	bool empty = (u64)queue->idle_us * QUEUE_IDLE_PART >= min_u64(base_us, queue->least_us);

	if (empty || queue->step_us > queue_limit(base_us)) {
		queue->base_us = (u32)min_u64(queue->least_us, (u64)ack->min_rtt_us * QUEUE_BASE_MOST);
		queue->risen = 0;
	} else if (queue->least_us > queue_limit(base_us)) {
		queue->risen++;
	} else {
		queue->risen = 0;
	}
	queue->samples = QUEUE_EVALUATED;
	queue->idle_us = 0;
	queue->step_us = 0;
}

/* The RTT of an ACK that came so long after another with that RTT: whether the path has become longer in between. */
static __always_inline void queue_sees_step(struct queue *queue, const struct ack *ack, u32 pause_us, u32 before_us)
{
	u32 rtt_us = (u32)ack->rtt_us;

	if (rtt_us < queue->step_us)
		queue->step_us = rtt_us;
	if (pause_us >= ack->min_rtt_us / QUEUE_RISE_PART && before_us <= queue_limit(queue_base(queue, ack)) &&
	    rtt_us > queue_limit(before_us) &&
	    (u64)ack->acked * ack_mss(ack) * QUEUE_STEP_PART <= ack->bytes_outstanding)
		queue->step_us = rtt_us;
}

/* An ACK with an RTT: for how long the bottleneck had nothing to send before the segment that it acknowledges. */
static __always_inline void queue_sees_pause(struct queue *queue, const struct doze *doze, const struct ack *ack)
{
	u32 pause_us = doze_pause_us(doze, ack->now_us);
	s64 waited_us = (s64)ack->rtt_us - queue_base(queue, ack);

	queue_sees_step(queue, ack, pause_us, doze->last_rtt_us);
	if (queue->begun && waited_us < pause_us)
		queue->idle_us = (u32)max_u64(queue->idle_us, pause_us - (u64)(waited_us > 0 ? waited_us : 0));
}

/* The same ACK. True: its RTT counts, of a round that has not been evaluated. */
static __always_inline bool queue_wants(struct queue *queue, const struct doze *doze, const struct ack *ack)
{
	if (ack->rtt_us >= 0)
		queue_sees_pause(queue, doze, ack);
	if (!queue->begun || round_is_over(queue->round_end, ack)) {
		queue->begun = 1;
		queue->round_bytes = ack->bytes_outstanding;
		queue->round_end = round_end(ack);
		queue->least_us = ~0U;
		queue->samples = 0;
	}
	return queue->samples != QUEUE_EVALUATED && ack->rtt_us >= 0;
}

/* Its RTT, of which the way back has added so much. True: the round is to be evaluated with it. */
static __always_inline bool queue_add(struct queue *queue, const struct ack *ack, u64 return_us)
{
	u32 left;

	queue->least_us = (u32)min_u64(queue->least_us, (u32)ack->rtt_us - return_us);
	queue->samples++;
	left = queue->round_end - (u32)ack->bytes_acked;
	if (queue->samples >= QUEUE_SAMPLES)
		return left <= queue->round_bytes - queue->round_bytes / QUEUE_PART;
	return queue->samples >= QUEUE_FEW && queue->round_bytes / QUEUE_LARGE >= ack_mss(ack) &&
	       left <= queue->round_bytes / 2;
}

/*
 * After an ACK that was looked at, and `doze` is set: what is evaluated needs samples, one in a 32nd of the part that it is of. Else it
 * is enough to know for how long the bottleneck had nothing to send, and when the path becomes longer, and short pauses
 * change neither.
 */
static __always_inline void queue_dozes(const struct queue *queue, struct doze *doze, const struct ack *ack)
{
	if (queue->risen || queue->step_us) {
		doze->pause_us = 0;
		return;
	}
	if (queue->samples != QUEUE_EVALUATED)
		doze_at_most(doze, ack, queue->round_bytes / QUEUE_PART / (2 * QUEUE_SAMPLES));
	doze_at_most(doze, ack, queue->round_end - (u32)ack->bytes_acked);
	doze->pause_us = (u32)min_u64(doze->pause_us, ack->min_rtt_us / (2 * QUEUE_IDLE_PART));
}

#endif
