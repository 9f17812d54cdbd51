/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What an algorithm sees of a socket at an ACK. */
#ifndef ONRAMP_SHELL_ACK_H
#define ONRAMP_SHELL_ACK_H

#include "view.h"

/* No RTT sample. */
#define NO_RTT (-1)

/* `acked` segments, with an RTT sample or NO_RTT; 0 and NO_RTT where there is no ACK. */
static __always_inline void describe(const struct sock *sk, u32 acked, s32 rtt_us, struct ack *ack)
{
	u32 mss = view_mss(sk);

	ack->now_us = view_now_us(sk);
	ack->bytes_acked = view_bytes_acked(sk);
	ack->bytes_sent = view_bytes_sent(sk);
	ack->bytes_outstanding = view_bytes_outstanding(sk);
	ack->delivered = view_delivered(sk);
	ack->acked = acked;
	ack->rtt_us = rtt_us;
	ack->smoothed_rtt_us = view_srtt_eighths_us(sk) >> 3;
	ack->min_rtt_us = view_min_rtt_us(sk);
	ack->cwnd = view_cwnd(sk);
	ack->ssthresh = view_ssthresh(sk);
	ack->in_flight = view_in_flight(sk);
	ack->mss = mss ? mss : 1;
	ack->pacing_rate = view_pacing_rate(sk);
	ack->gso_max_size = view_gso_max_size(sk);
	ack->flags = view_limited_by(sk) | (view_paced(sk) ? ACK_PACED : 0);
	ack->receiver_clock = view_receiver_clock(sk);
	ack->receive_window = view_receive_window(sk);
}

#endif
