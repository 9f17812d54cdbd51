/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A flow's round for consumers of rounds: how it begins, what its ACKs add, and what is reported at its end. */
#ifndef ONRAMP_ROUND_BPF_H
#define ONRAMP_ROUND_BPF_H

#include "../abi.h"
#include "../algorithm/round.h"

static __always_inline void begin_round(struct round *round, const struct ack *ack)
{
	round->start_us = ack->now_us;
	round->start_bytes = (u32)ack->bytes_acked;
	round->end = round_end(ack);
	round->start_delivered = ack->delivered;
	round->min_rtt_us = ~0U;
	round->acks = 0;
	round->cwnd_limited_us = 0;
	round->last_us = (u32)ack->now_us;
}

static __always_inline void count_in_round(struct round *round, const struct ack *ack)
{
	round->acks++;
	if (ack->flags & ACK_CWND_LIMITED)
		round->cwnd_limited_us += (u32)ack->now_us - round->last_us;
	round->last_us = (u32)ack->now_us;
	if (ack->rtt_us >= 0)
		round->min_rtt_us = (u32)min_u64(round->min_rtt_us, (u32)ack->rtt_us);
}

/* `end`: payload of the ACK that ends it. */
static __always_inline void describe_round(struct round_payload *payload, const struct round *round,
					   const struct ack_payload *end)
{
	const struct ack *ack = &end->ack;

	payload->duration_us = ack->now_us - round->start_us;
	payload->bytes = (u32)ack->bytes_acked - round->start_bytes;
	payload->delivered = ack->delivered - round->start_delivered;
	payload->pacing_rate = ack->pacing_rate;
	payload->acks = round->acks;
	payload->min_rtt_us = round->min_rtt_us == ~0U ? 0 : round->min_rtt_us;
	payload->smoothed_rtt_us = ack->smoothed_rtt_us;
	payload->cwnd = ack->cwnd;
	payload->ssthresh = ack->ssthresh;
	payload->in_flight = ack->in_flight;
	payload->mss = ack->mss;
	payload->flags = end->flags;
	payload->start_phase = end->start_phase;
	payload->start_end = end->start_end;
	payload->number = round->number;
	payload->cwnd_limited_us = round->cwnd_limited_us;
	payload->receive_window = ack->receive_window;
}

#endif
