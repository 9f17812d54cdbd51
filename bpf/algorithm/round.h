/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A round, which is the same to all algorithms and to telemetry: it begins with an ACK, and it is over with the first
 * ACK of what had not been sent then, which begins the next. So it lasts an RTT or longer. RFC 9406 section 4.2 says
 * so too, where windowEnd is the first byte of the next round.
 *
 * Bytes are counted modulo 2^32. No window is larger than 2^30 bytes (RFC 7323 section 2.2), so what is acknowledged
 * lies less than 2^31 from the end of a round that is asked about with every ACK.
 */
#ifndef ONRAMP_ROUND_H
#define ONRAMP_ROUND_H

#include "algorithm.h"

/* Fields of an ACK that are read here, as in each header: a part of NAME_READS. */
#define ROUND_READS (READS(bytes_acked) | READS(bytes_outstanding))

/* Where a round ends that begins with this ACK: bytes acknowledged, modulo 2^32. */
static __always_inline u32 round_end(const struct ack *ack)
{
	return (u32)ack->bytes_acked + ack->bytes_outstanding;
}

/* Whether a round that ends there is over. */
static __always_inline bool round_is_over(u32 end, const struct ack *ack)
{
	return (s32)((u32)ack->bytes_acked - end) > 0;
}

/* What the receiver has is what is acknowledged, and of what is not, what is not in flight: it came out of order (SACK). */
#define RECEIVED_READS (ROUND_READS | READS(in_flight) | READS(mss))

/* Bytes sent that the receiver does not have, as far as it has said. */
static __always_inline u32 unreceived_bytes(const struct ack *ack)
{
	return (u32)min_u64((u64)ack->in_flight * ack->mss, ack->bytes_outstanding);
}

/* Bytes that the receiver has, modulo 2^32. */
static __always_inline u32 received_bytes(const struct ack *ack)
{
	return (u32)ack->bytes_acked + ack->bytes_outstanding - unreceived_bytes(ack);
}

#endif
