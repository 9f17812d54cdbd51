/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The rate of the bottleneck by the line that the ACKs of a round lie on: bytes that they acknowledge, over the time that
 * they take.
 *
 *	time │                                    .·   - by arrival, on this host's clock
 *	     │                  .·''         .·''      - by the receiver's clock, which ACKs carry (RFC 7323: TSval)
 *	     │          .·''                           - by departure: arrival less the RTT of the newest byte
 *	     └─────────────────────────────────── bytes
 *
 *   - A round is what was in flight when it began. What came out of order counts when it came (received_bytes). The round's
 *     first sixteenth is left out, which the last round's pause spoils, and of its last what comes after a gap of twice the
 *     longest: an ACK that the receiver has delayed (RFC 1122, section 4.2.3.2).
 *   - The error of a line is about its longest gap over its length. It shows a rate if it is eight times as long as its longest
 *     gap, and as long as a sixteenth of the minimum RTT. The rate is the most that its error allows for: its bytes over its
 *     length, were the longest gap like the others. So slow start is left late rather than early.
 *   - The receiver's clock knows nothing of the way back: neither jitter nor batches nor a thin return. It is used where
 *     it ticks in milliseconds and its line is long enough, or if arrivals take more time than the errors of both allow
 *     for: then they show the pace of the return path, as where a satellite's return link has yet to be granted, or is too
 *     thin. While it contradicts the arrivals there is no rate: in the first round a thin return path spreads the ACKs of a
 *     large initial window, which left as one burst, over as much of the round as it needs.
 *   - Data that left no faster than they arrived say how fast the sender was: there is no rate if they left in more than
 *     `most_sent_pct` of the time in which they arrived, by the receiver's clock where that is less. Departures are on the
 *     same host's clock as arrivals of ACKs, so this needs no state for each segment.
 *
 * The line is asked when the round is over, and before, from a quarter of its bytes on, where ACKs have just paused, so that
 * it ends with a batch; once in a 64th of the round. Between ACKs that set its longest gap or are asked about it takes
 * no more than their number (doze.h).
 *
 * The same two clocks say how much longer ACKs take on the way back than the quickest did (ack_line_return_us): where it is
 * narrow they queue there, and the window has to cover that, too.
 *
 * Use: embed a struct ack_line, ack_line_restart it when slow start begins, give ack_line_on_ack every ACK that is looked at;
 * ack_line_dozes says when the next one has to be.
 */
#ifndef ONRAMP_ACK_LINE_H
#define ONRAMP_ACK_LINE_H

#include "doze.h"

#define ACK_LINE_READS (DOZE_READS | READS(min_rtt_us) | READS(flags))

/* What of a round is left out at its begin, and at its end. */
#define ACK_LINE_EDGE 16
/* From this part of a round on its line is asked, and as often as this in a round. */
#define ACK_LINE_EARLY_PART 4
#define ACK_LINE_QUESTIONS 64
/* What a line must be at least: longest gaps, a part of the minimum RTT. */
#define ACK_LINE_GAPS 8
#define ACK_LINE_RTT_PART 16
/* A tick of the receiver's clock. */
#define ACK_LINE_TICK_US 1000
/* Times on a line, at most: 33 s. */
#define ACK_LINE_TIME_MAX_US (1U << 25)
/* kB/s; 17 GB/s. */
#define ACK_LINE_RATE_MAX (1U << 24)

struct ack_line {
	u64 first_us; /* arrival of the first ACK that began a round, had it come as quickly as any; with the receiver's clock then */
	u64 begin_us; /* of the line's first ACK, and of its newest */
	u64 end_us;
	u32 first_clock; /* 0: not known */
	u32 begin_clock; /* the receiver's clock with these ACKs */
	u32 end_clock;
	u32 begin_acked; /* bytes that the receiver had with them, modulo 2^32, as are the next four */
	u32 end_acked;
	u32 last_acked;	 /* with the newest ACK */
	u32 from;	 /* when the round began */
	u32 asked_acked; /* when the line was asked last */
	u32 bytes;	 /* of the round */
	u32 begin_rtt_us;
	u32 end_rtt_us;
	u32 count;	   /* ACKs of the line */
	u32 gap_us;	   /* longest between two of them */
	u32 clock_gap_us;  /* by the receiver's clock */
	u32 gap_before_us; /* of the round before */
	u32 rounds;	   /* ended since slow start began */
	u8 begun;	   /* whether there is a round */
	u8 ended;	   /* whether the line of the current round has ended */
};

/* The receiver's clock stays known: it is the same in the next slow start. */
static __always_inline void ack_line_restart(struct ack_line *line)
{
	line->gap_us = 0;
	line->gap_before_us = 0;
	line->rounds = 0;
	line->begun = 0;
}

/* A round begins with this ACK; the one before, if there is one, has been asked. */
static __always_inline void ack_line_turn(struct ack_line *line, const struct ack *ack)
{
	if (line->begun) {
		line->rounds++;
		line->gap_before_us = line->gap_us;
	}
	if (!line->first_clock) {
		line->first_clock = ack->receiver_clock;
		line->first_us = ack->now_us;
	}
	line->begun = 1;
	line->ended = 0;
	line->from = received_bytes(ack);
	line->bytes = (u32)max_u64(unreceived_bytes(ack), 1);
	line->last_acked = line->from;
	line->asked_acked = line->from;
	line->count = 0;
	line->gap_us = 0;
	line->clock_gap_us = 0;
}

/* So many ticks of the receiver's clock, microseconds. */
static __always_inline u64 ack_line_ticks(u32 ticks)
{
	return (u64)ticks * ACK_LINE_TICK_US;
}

/* How much the RTT of an ACK is above the least, which is what queues of both ways can have delayed it by. */
static __always_inline u64 ack_line_risen_us(const struct ack *ack)
{
	return ack->rtt_us > 0 && (u32)ack->rtt_us > ack->min_rtt_us ? (u32)ack->rtt_us - ack->min_rtt_us : 0;
}

/* Whether there is a clock of the receiver's, and has been for long enough to be compared with the arrivals. */
static __always_inline bool ack_line_has_clock(const struct ack_line *line, const struct ack *ack)
{
	return line->first_clock && ack->receiver_clock && ack->now_us - line->first_us > 8 * ACK_LINE_TICK_US;
}

/*
 * Whether that clock ticks in milliseconds, as far as arrivals show: they are stretched by no more than the RTT has risen, or
 * agree within a factor of two.
 */
static __always_inline bool ack_line_clock_agrees(const struct ack_line *line, const struct ack *ack)
{
	u64 arrived_us = ack->now_us - line->first_us;
	u64 ticked_us = ack_line_ticks(ack->receiver_clock - line->first_clock);

	return ticked_us <= arrived_us * 2 &&
	       arrived_us <= ticked_us + max_u64(ticked_us, ack_line_risen_us(ack) + ACK_LINE_TICK_US);
}

/*
 * How much longer an ACK took on the way back than the quickest did: what it arrives later than the receiver's clock has it,
 * less a tick, at most what the RTT has risen by. 0 where that clock is not known.
 */
static __always_inline u64 ack_line_return_us(const struct ack_line *line, const struct ack *ack)
{
	u64 risen_us = ack_line_risen_us(ack);
	u64 late_us = ack->now_us - line->first_us;
	u64 ticked_us = ack_line_ticks(ack->receiver_clock - line->first_clock) + ACK_LINE_TICK_US;

	if (!risen_us || late_us <= ticked_us || !ack_line_has_clock(line, ack) || !ack_line_clock_agrees(line, ack))
		return 0;
	return min_u64(late_us - ticked_us, risen_us);
}

/* The error of a line, its longest gap over its length, in 32nds; all of it at most. */
static __always_inline u64 ack_line_error(u64 gap_us, u64 span_us)
{
	return span_us ? min_u64(gap_us * 32 / span_us + 1, 32) : 32;
}

/* The rate that the line shows, kB/s; 0: none. Percent: 0 to 100. */
__noinline u32 ack_line_rate(const struct ack_line *line, const struct ack *ack, u32 most_sent_pct)
{
	u64 gap_us, span_us, least_us, clock_gap_us, clock_span_us, arrived_us, took_us, error, clock_error;
	s64 left_us;
	u32 bytes;

	if (!line || !ack)
		return 0;
	gap_us = line->gap_us;
	span_us = arrived_us = took_us = min_u64(line->end_us - line->begin_us, ACK_LINE_TIME_MAX_US);
	if (ack_line_has_clock(line, ack)) {
		if (!ack_line_clock_agrees(line, ack))
			return 0;
		clock_gap_us = max_u64(line->clock_gap_us, ACK_LINE_TICK_US);
		clock_span_us = min_u64(ack_line_ticks(line->end_clock - line->begin_clock), ACK_LINE_TIME_MAX_US);
		error = ack_line_error(gap_us, span_us);
		clock_error = ack_line_error(clock_gap_us, clock_span_us);
		if (clock_gap_us * ACK_LINE_GAPS <= clock_span_us ||
		    span_us * (32 - error) > clock_span_us * (32 + clock_error)) {
			gap_us = clock_gap_us;
			span_us = clock_span_us;
		}
		/* A tick at either end. */
		took_us = min_u64(span_us, clock_span_us + 2 * ACK_LINE_TICK_US);
	}
	left_us = (s64)arrived_us - ((s64)line->end_rtt_us - (s64)line->begin_rtt_us);
	bytes = line->end_acked - line->begin_acked;
	/* Where the segment size changes, what the receiver has can seem to be less than before. */
	if (line->count < 2 || (s32)bytes <= 0 || !span_us || span_us < gap_us * ACK_LINE_GAPS || !ack->min_rtt_us ||
	    span_us * ACK_LINE_RTT_PART < ack->min_rtt_us || left_us * 100 > (s64)(took_us * most_sent_pct))
		return 0;
	least_us = span_us - gap_us + span_us / (line->count - 1);
	return (u32)min_u64((u64)bytes * 1000 / least_us, ACK_LINE_RATE_MAX);
}

/* An ACK that took less on the way back than any before: what others take longer is counted from there. */
static __always_inline void ack_line_sees_quicker(struct ack_line *line, const struct ack *ack)
{
	u64 late_us = ack->now_us - line->first_us;
	u64 ticked_us = ack_line_ticks(ack->receiver_clock - line->first_clock);

	if (ticked_us > late_us && ack_line_has_clock(line, ack) && ack_line_clock_agrees(line, ack))
		line->first_us -= ticked_us - late_us;
}

/* What is a 64th of the round, bytes. */
static __always_inline u32 ack_line_step(const struct ack_line *line)
{
	return line->bytes / ACK_LINE_QUESTIONS;
}

/* Whether this is as much further than that. */
static __always_inline bool ack_line_further(const struct ack_line *line, const struct ack *ack, u32 acked)
{
	return received_bytes(ack) - acked >= ack_line_step(line);
}

/*
 * ACKs that have been passed over belong to the line. What the newest of them acknowledged is what this one does not, which
 * may be by less than a segment.
 */
static __always_inline void ack_line_catches_up(struct ack_line *line, const struct doze *doze, const struct ack *ack)
{
	if (!doze->passed)
		return;
	line->last_acked = received_bytes(ack) - ack->acked * ack_mss(ack);
	if (line->ended || !line->count)
		return;
	line->count += doze->passed;
	line->end_us = ack->now_us - doze_pause_us(doze, ack->now_us);
	line->end_clock = ack->receiver_clock - doze_ticks(doze, ack->receiver_clock);
	line->end_acked = line->last_acked;
	line->end_rtt_us = doze->last_rtt_us;
}

/* Takes an ACK of the line, which came so long after the one before on either clock. */
static __always_inline void ack_line_add(struct ack_line *line, const struct ack *ack, u32 gap_us, u64 ticked_us)
{
	if (ack->rtt_us < 0)
		return;
	if (line->count) {
		line->gap_us = (u32)max_u64(line->gap_us, gap_us);
		line->clock_gap_us = (u32)max_u64(line->clock_gap_us, ticked_us);
	} else if (received_bytes(ack) - line->from < line->bytes / ACK_LINE_EDGE) {
		return;
	} else {
		line->begin_us = ack->now_us;
		line->begin_clock = ack->receiver_clock;
		line->begin_acked = received_bytes(ack);
		line->begin_rtt_us = (u32)ack->rtt_us;
	}
	line->count++;
	line->end_us = ack->now_us;
	line->end_clock = ack->receiver_clock;
	line->end_acked = received_bytes(ack);
	line->end_rtt_us = (u32)ack->rtt_us;
}

/* Whether the receiver has waited with an ACK: for more than twice as long as with any other of the line. */
static __always_inline bool ack_line_waited(const struct ack_line *line, u32 gap_us, u64 ticked_us)
{
	return gap_us > 2 * (u64)line->gap_us || ticked_us > 2 * max_u64(line->clock_gap_us, ACK_LINE_TICK_US);
}

/* An ACK of the round, of which the line may not have ended: the rate, kB/s, 0: none. */
static __always_inline u32 ack_line_take(struct ack_line *line, const struct doze *doze, const struct ack *ack,
					 u32 most_sent_pct)
{
	u32 gap_us = (u32)min_u64(doze_pause_us(doze, ack->now_us), ACK_LINE_TIME_MAX_US);
	u64 ticked_us = gap_us < ACK_LINE_TIME_MAX_US ? ack_line_ticks(doze_ticks(doze, ack->receiver_clock)) : gap_us;
	u32 done = received_bytes(ack) - line->from;
	u32 rate = 0;

	if (done > line->bytes - line->bytes / ACK_LINE_EDGE && ack_line_waited(line, gap_us, ticked_us)) {
		line->ended = 1;
		return 0;
	}
	if (ack->flags & ACK_APP_LIMITED && !(ack->flags & ACK_CWND_LIMITED)) {
		line->ended = 1;
		line->count = 0;
		return 0;
	}
	if (done > line->bytes / ACK_LINE_EARLY_PART && gap_us * 2 >= line->gap_us &&
	    ack_line_further(line, ack, line->asked_acked)) {
		line->asked_acked = received_bytes(ack);
		rate = ack_line_rate(line, ack, most_sent_pct);
	}
	ack_line_add(line, ack, gap_us, ticked_us);
	return rate;
}

/* One ACK: the rate that the line shows now, kB/s; 0: it shows none, or was not asked. */
static __always_inline u32 ack_line_on_ack(struct ack_line *line, const struct doze *doze, const struct ack *ack,
					   u32 most_sent_pct)
{
	u32 rate = 0;

	ack_line_catches_up(line, doze, ack);
	if (!line->begun || (s32)(received_bytes(ack) - line->from - line->bytes) > 0) {
		if (line->begun)
			rate = ack_line_rate(line, ack, most_sent_pct);
		ack_line_turn(line, ack);
		return rate;
	}
	ack_line_sees_quicker(line, ack);
	if (received_bytes(ack) == line->last_acked)
		return 0;
	if (!line->ended)
		rate = ack_line_take(line, doze, ack, most_sent_pct);
	line->last_acked = received_bytes(ack);
	return rate;
}

/*
 * After an ACK that was looked at: for how long the line needs no more than the number of those that follow. While it lasts a
 * longer gap ends that, or half of the longest where the line is to be asked.
 */
static __always_inline void ack_line_dozes(const struct ack_line *line, struct doze *doze, const struct ack *ack)
{
	u32 done = received_bytes(ack) - line->from;
	bool asks = done > line->bytes / ACK_LINE_EARLY_PART && ack_line_further(line, ack, line->asked_acked);
	bool lasts = line->count && !line->ended, begins = !line->count && !line->ended;
	u32 part = begins ? line->bytes / ACK_LINE_EDGE : line->bytes;

	doze->acked = (u32)ack->bytes_acked + (u32)min_u64(ack_line_step(line), part > done ? part - done : 0);
	doze->pause_us = DOZE_PAUSE_MAX_US;
	doze->ticks = DOZE_TICKS_MAX;
	if (!lasts)
		return;
	doze->pause_us = (u32)min_u64(asks ? (line->gap_us + 1) / 2 : line->gap_us + 1, DOZE_PAUSE_MAX_US);
	doze->ticks = (u32)min_u64(line->clock_gap_us / ACK_LINE_TICK_US + 1, DOZE_TICKS_MAX);
}

#endif
