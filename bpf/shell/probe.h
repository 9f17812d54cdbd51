/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The option AFTER_PROBE (record.h): growth where a path has become larger, or where slow start was left early. A round in
 * which no queue stands, the window is used up and deliveries keep pace with it says that the path takes all of it. After
 * eight rounds, of which the last two are such, the threshold is raised above the window by a quarter, up to which the base
 * grows as in slow start: in half a round trip or so. RFC 5681 binds the threshold to reductions only after a loss.
 *
 * Whether a queue stands is asked once in a round: the smoothed RTT is above the minimum by more than a sixteenth. So a flow
 * that has filled its path does not probe. The algorithm is not called meanwhile: this is no slow start of its.
 *
 * Rounds are counted in an operation that nothing else needs, in_ack_event, which the loader clears without this option.
 */
#ifndef ONRAMP_SHELL_PROBE_H
#define ONRAMP_SHELL_PROBE_H

#include "after.h"
#include "limits.h"

/* Of the window, by which the threshold is raised. */
#define PROBE_PART 4
/* Rounds from one probe, or reduction, to the next, and those at its end that must take all of the window. */
#define PROBE_ROUNDS 8
#define PROBE_LAST_ROUNDS 2
/* Of the minimum RTT, that a standing queue adds at least; of the window, that deliveries in an RTT may lack. */
#define PROBE_QUEUE_PART 16
#define PROBE_PACE_PART 8

/* Whether growth below the threshold is a probe's. A window below that which it began with has been reduced since. */
static __always_inline bool is_probing(const struct sock *sk, const struct limits *limits)
{
	return base_has(sk, AFTER_PROBE) && limits->flags & LIMITS_PROBING &&
	       (u64)view_cwnd(sk) * (PROBE_PART + 1) >= (u64)view_ssthresh(sk) * PROBE_PART;
}

/* Whether the path has taken all of the window in the round that is over. */
static __always_inline bool round_took_all(const struct sock *sk)
{
	u64 srtt_us = view_srtt_eighths_us(sk) >> 3, min_rtt_us = view_min_rtt_us(sk);
	u64 delivered = view_rate_delivered(sk) * srtt_us;
	u32 limited_by = view_limited_by(sk), window = view_cwnd(sk), interval_us = view_rate_interval_us(sk);

	return interval_us && srtt_us <= min_rtt_us + min_rtt_us / PROBE_QUEUE_PART && limited_by & ACK_CWND_LIMITED &&
	       !(limited_by & ACK_RATE_APP_LIMITED) &&
	       delivered >= (u64)(window - window / PROBE_PACE_PART) * interval_us;
}

/* in_ack_event: whether a probe is due, which it is in congestion avoidance alone. */
static __always_inline bool probe_is_due(const struct sock *sk, struct limits *limits)
{
	if (!base_has(sk, AFTER_PROBE) || is_below_threshold(sk) || view_state(sk) > STATE_DISORDER ||
	    (s32)((u32)view_bytes_acked(sk) - limits->round_end) <= 0)
		return false;
	limits->round_end = (u32)view_bytes_acked(sk) + view_bytes_outstanding(sk);
	limits->flags &= ~LIMITS_PROBING;
	limits->rounds = (u8)min_u64(limits->rounds + 1, PROBE_ROUNDS - (round_took_all(sk) ? 0 : PROBE_LAST_ROUNDS));
	return limits->rounds >= PROBE_ROUNDS;
}

/* The base grows up to a threshold above the window. */
static __always_inline void begin_probe(struct sock *sk, struct limits *limits)
{
	limits->rounds = 0;
	limits->flags |= LIMITS_PROBING;
	set_ssthresh(sk, view_cwnd(sk) + view_cwnd(sk) / PROBE_PART);
}

/* A reduction: the rounds are counted anew. */
static __always_inline void end_probe(const struct sock *sk, struct limits *limits)
{
	if (!base_has(sk, AFTER_PROBE))
		return;
	limits->rounds = 0;
	limits->flags &= ~LIMITS_PROBING;
}

#endif
