/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A sender that could exist, as far as an algorithm can see it: it sends what its window allows, is acknowledged after
 * about a round trip, and has the shell (shell/), which does what verdicts say. The input decides when ACKs come, for how
 * much, with which RTT.
 */
#ifndef ONRAMP_FUZZ_SENDER_H
#define ONRAMP_FUZZ_SENDER_H

#include "../../shell/sleep.h"
#include "../shell.h"
#include "input.h"

struct sender {
	struct sock sk;
	struct shell_flow flow;
	struct sleep sleep;   /* as the kernel would have it: every ACK takes its way all the same */
	struct limits dozing; /* likewise, of what sleep needs of the limits */
	u32 rtt_us;	      /* of the empty path */
	u32 acked;	      /* segments, by the newest ACK */
	s32 sample_us;	      /* its RTT, or NO_RTT */
};

static void sender_begin(struct sender *sender, struct input *input, u32 traits)
{
	struct sock *sk = &sender->sk;

	*sender = (struct sender){ .rtt_us = (1U << take_byte(input) % 22) + take_byte(input),
				   .flow = { .traits = traits, .has_state = 1 },
				   .sample_us = NO_RTT };
	*sk = (struct sock){
		.now_us = take_number(input) >> 2,
		.bytes_acked = take_number(input),
		.delivered = (u32)take_number(input),
		.cwnd = INITIAL_WINDOW,
		.ssthresh = NO_THRESHOLD,
		.mss = 1 + (u32)take_within(input, 0, 8999),
		.max_pacing_rate = ~0ULL,
		.gso_max_size = 65536,
		.receive_window = ~0U,
	};
	sk->bytes_sent = sk->bytes_acked;
	/* TCP has no more than 1 GiB in flight. */
	sk->cwnd_clamp = (1U << 30) / sk->mss;
}

/* Fills the window, and no more than the receiver's, unless the application has nothing to send. */
static void sender_sends(struct sender *sender)
{
	struct sock *sk = &sender->sk;
	u32 sent, most = (u32)min_u64(sk->cwnd, sk->receive_window / sk->mss);

	if (view_paced(sk))
		pace(sk, &sender->flow.limits);
	if (sk->limited_by & ACK_APP_LIMITED || sk->in_flight >= most)
		return;
	sent = most - sk->in_flight;
	sk->in_flight = most;
	sk->bytes_sent += (u64)sent * sk->mss;
	sk->bytes_outstanding += sent * sk->mss;
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
	struct sock *sk = &sender->sk;

	sk->now_us += arrival.pause == 255 ? (u64)sender->rtt_us << arrival.flags % 16
					   : (u64)sender->rtt_us * arrival.pause / 128;
	sender->acked = (u32)((u64)sk->in_flight * arrival.part / 255);
	sk->in_flight -= sender->acked;
	sk->delivered += sender->acked;
	sk->bytes_acked += (u64)sender->acked * sk->mss;
	sk->bytes_outstanding -= sender->acked * sk->mss;
	sk->limited_by = (arrival.flags < 16 ? arrival.flags : ACK_CWND_LIMITED) & ~ACK_PACED;
	/* It was sent somewhere within the last RTT, in ticks of a millisecond. */
	sk->receiver_clock = (u32)((sk->now_us - sender->rtt_us / 2 * (arrival.pause & 1)) / 1000);
	sender->sample_us = NO_RTT;
	if (arrival.rtt == 255)
		return;
	sender->sample_us = (s32)((u64)sender->rtt_us * (100 + arrival.rtt) / 100);
	sk->srtt_eighths_us = sk->srtt_eighths_us
				      ? (u32)((7ULL * sk->srtt_eighths_us + 8ULL * (u32)sender->sample_us) / 8)
				      : (u32)sender->sample_us << 3;
	if (!sk->min_rtt_us || (u32)sender->sample_us < sk->min_rtt_us)
		sk->min_rtt_us = (u32)sender->sample_us;
	if (sk->srtt_eighths_us)
		sk->pacing_rate = 2ULL * window_rate(sk);
}

/* The base grows the window, by a segment for each acknowledged or, past slow start, for each ACK; and sends. */
static void sender_grows(struct sender *sender)
{
	struct growth_step step = growth_begins(&sender->sk);
	struct limits *limits = growth_has_limits(step, sender->flow.traits) ? &sender->flow.limits : 0;
	struct shell shell = shell_of(&sender->flow, &sender->sk);
	u32 acked = sender->acked;
	bool limited = growth_before(limits, &acked);

	if (!step.starting)
		acked = (u32)min_u64(acked, 1);
	set_cwnd(&sender->sk, (u32)min_u64((u64)sender->sk.cwnd + acked, sender->sk.cwnd_clamp));
	if (growth_after(&sender->sk, limits, step, limited)) {
		sender->sleep.until = 0;
		reached_threshold(&shell);
	}
	sender_sends(sender);
}

/* All that was in flight is taken for lost; the window is the loss window, or the initial one after an idle period. */
static void sender_restarts(struct sender *sender, u32 window)
{
	struct sock *sk = &sender->sk;

	sk->cwnd = window;
	sk->in_flight = 0;
	sk->bytes_acked = sk->bytes_sent;
	sk->bytes_outstanding = 0;
	slow_start_ends(&sender->flow.header);
	sender_sends(sender);
}

#endif
