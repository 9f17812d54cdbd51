/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What an algorithm sees of a socket at an ACK. */
#ifndef ONRAMP_SHELL_ACK_H
#define ONRAMP_SHELL_ACK_H

#include "view.h"

/* No RTT sample. */
#define NO_RTT (-1)

/*
 * `acked` segments, with an RTT sample or NO_RTT; 0 and NO_RTT where there is no ACK. `fields`: those that something reads,
 * a constant; the others are 0, and the socket is not looked at for them. No field: nothing is called with it, and not
 * even those are written.
 */
static __always_inline void describe_fields(const struct sock *sk, u32 acked, s32 rtt_us, u32 fields, struct ack *ack)
{
	u32 mss = fields & READS(mss) ? view_mss(sk) : 0;

	ack->acked = acked;
	ack->rtt_us = rtt_us;
	if (!fields)
		return;
	ack->now_us = fields & READS(now_us) ? view_now_us(sk) : 0;
	ack->bytes_acked = fields & READS(bytes_acked) ? view_bytes_acked(sk) : 0;
	ack->bytes_sent = fields & READS(bytes_sent) ? view_bytes_sent(sk) : 0;
	ack->bytes_outstanding = fields & READS(bytes_outstanding) ? view_bytes_outstanding(sk) : 0;
	ack->delivered = fields & READS(delivered) ? view_delivered(sk) : 0;
	ack->smoothed_rtt_us = fields & READS(smoothed_rtt_us) ? view_srtt_eighths_us(sk) >> 3 : 0;
	ack->min_rtt_us = fields & READS(min_rtt_us) ? view_min_rtt_us(sk) : 0;
	ack->cwnd = fields & READS(cwnd) ? view_cwnd(sk) : 0;
	ack->ssthresh = fields & READS(ssthresh) ? view_ssthresh(sk) : 0;
	ack->in_flight = fields & READS(in_flight) ? view_in_flight(sk) : 0;
	ack->mss = mss ? mss : 1;
	ack->pacing_rate = fields & READS(pacing_rate) ? view_pacing_rate(sk) : 0;
	ack->gso_max_size = fields & READS(gso_max_size) ? view_gso_max_size(sk) : 0;
	ack->flags = fields & READS(flags) ? view_limited_by(sk) | (view_paced(sk) ? ACK_PACED : 0) : 0;
	ack->receiver_clock = fields & READS(receiver_clock) ? view_receiver_clock(sk) : 0;
	ack->receive_window = fields & READS(receive_window) ? view_receive_window(sk) : 0;
}

static __always_inline void describe(const struct sock *sk, u32 acked, s32 rtt_us, struct ack *ack)
{
	describe_fields(sk, acked, rtt_us, READS_ALL, ack);
}

#endif
