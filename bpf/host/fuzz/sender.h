/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A sender that could exist, as far as an algorithm can see it: it sends what its window allows, is acknowledged after
 * about a round trip, and does what verdicts say, as kernel/window.bpf.h does. The input decides when ACKs come, for
 * how much, with which RTT.
 */
#ifndef ONRAMP_FUZZ_SENDER_H
#define ONRAMP_FUZZ_SENDER_H

#include "../../algorithm/algorithm.h"
#include "input.h"

struct sender {
	struct ack ack; /* what the next call gets */
	u32 rtt_us;	/* of the empty path */
	u32 window_max; /* TCP has no more than 1 GiB in progress */
};

static void sender_begin(struct sender *sender, struct input *input)
{
	struct ack *ack = &sender->ack;

	sender->rtt_us = (1U << take_byte(input) % 22) + take_byte(input);
	*ack = (struct ack){
		.now_us = take_number(input) >> 2,
		.bytes_acked = take_number(input),
		.delivered = (u32)take_number(input),
		.cwnd = INITIAL_WINDOW,
		.ssthresh = 0x7fffffff,
		.mss = 1 + (u32)take_within(input, 0, 8999),
		.gso_max_size = 65536,
		.rtt_us = -1,
	};
	ack->bytes_sent = ack->bytes_acked;
	sender->window_max = (1U << 30) / ack->mss;
}

static bool sender_slow_starts(const struct sender *sender)
{
	return sender->ack.cwnd < sender->ack.ssthresh;
}

/* Fills the window, unless the application has nothing to send. */
static void sender_sends(struct sender *sender)
{
	struct ack *ack = &sender->ack;
	u32 sent;

	if (ack->flags & ACK_APP_LIMITED || ack->in_flight >= ack->cwnd)
		return;
	sent = ack->cwnd - ack->in_flight;
	ack->in_flight = ack->cwnd;
	ack->bytes_sent += (u64)sent * ack->mss;
	ack->bytes_outstanding += sent * ack->mss;
}

/* How an ACK arrives. */
struct arrival {
	u8 pause; /* how much later than the last, in 1/128 RTT; 255: many RTTs */
	u8 part;  /* for how much of what is in flight, in 1/255 */
	u8 rtt;	  /* by how much its RTT exceeds the path's, percent; 255: no sample */
	u8 flags; /* enum ack_flag below 16, else the window was used */
};

static struct arrival take_arrival(struct input *input)
{
	struct arrival arrival;

	arrival.pause = take_byte(input);
	arrival.part = take_byte(input);
	arrival.rtt = take_byte(input);
	arrival.flags = take_byte(input);
	return arrival;
}

static void sender_is_acknowledged(struct sender *sender, struct arrival arrival)
{
	struct ack *ack = &sender->ack;

	ack->now_us += arrival.pause == 255 ? (u64)sender->rtt_us << arrival.flags % 16
					    : (u64)sender->rtt_us * arrival.pause / 128;
	ack->acked = (u32)((u64)ack->in_flight * arrival.part / 255);
	ack->in_flight -= ack->acked;
	ack->delivered += ack->acked;
	ack->bytes_acked += (u64)ack->acked * ack->mss;
	ack->bytes_outstanding -= ack->acked * ack->mss;
	ack->flags = arrival.flags < 16 ? arrival.flags : ACK_CWND_LIMITED;
	/* It was sent somewhere within the last RTT, in ticks of a millisecond. */
	ack->receiver_clock = (u32)((ack->now_us - sender->rtt_us / 2 * (arrival.pause & 1)) / 1000);
	ack->rtt_us = -1;
	if (arrival.rtt == 255)
		return;
	ack->rtt_us = (s32)((u64)sender->rtt_us * (100 + arrival.rtt) / 100);
	ack->smoothed_rtt_us =
		ack->smoothed_rtt_us ? (u32)((7ULL * ack->smoothed_rtt_us + (u32)ack->rtt_us) / 8) : (u32)ack->rtt_us;
	if (!ack->min_rtt_us || (u32)ack->rtt_us < ack->min_rtt_us)
		ack->min_rtt_us = (u32)ack->rtt_us;
	if (ack->smoothed_rtt_us)
		ack->pacing_rate = 2ULL * ack->cwnd * ack->mss * 1000000 / ack->smoothed_rtt_us;
}

/* Does what the verdict says, grows the window, and sends what it allows. */
static void sender_obeys(struct sender *sender, const struct verdict *verdict)
{
	struct ack *ack = &sender->ack;
	u64 growth = ack->acked;

	if (verdict->cwnd)
		ack->cwnd = (u32)max_u64(verdict->cwnd, MIN_WINDOW);
	if (verdict->ssthresh)
		ack->ssthresh = (u32)max_u64(verdict->ssthresh, MIN_WINDOW);
	if (verdict->growth == GROWTH_LIMITED)
		growth = min_u64(growth, verdict->growth_limit);
	if (!sender_slow_starts(sender))
		growth = min_u64(growth, 1);
	ack->cwnd = (u32)min_u64(ack->cwnd + growth, sender->window_max);
	sender_sends(sender);
}

/* All that was in flight is taken for lost; the window is the loss window, or the initial one after an idle period. */
static void sender_restarts(struct sender *sender, u32 window)
{
	struct ack *ack = &sender->ack;

	ack->cwnd = window;
	ack->in_flight = 0;
	ack->bytes_acked = ack->bytes_sent;
	ack->bytes_outstanding = 0;
	sender_sends(sender);
}

#endif
