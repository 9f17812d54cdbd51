/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The rate of the bottleneck by the line that the ACKs of a round lie on: the least squares fit of their times on the
 * bytes that they acknowledge. Its slope is the time that a byte takes. Every ACK counts, so a pause of the way back
 * moves the line by no more than the pause over the line's length.
 *
 *	time │                                    .·   - by arrival, on this host's clock
 *	     │                  .·''         .·''      - by the receiver's clock, which ACKs carry (RFC 7323: TSval)
 *	     │          .·''                           - by departure: arrival less the RTT of the newest byte
 *	     └─────────────────────────────────── bytes
 *
 *   - A round is what was outstanding when it began. Its first sixteenth is left out, which the last round's pause
 *     spoils, and of its last what comes after a gap of twice the longest: an ACK that the receiver has delayed (RFC 1122,
 *     section 4.2.3.2). Where ACKs pause for more than a quarter of the minimum RTT and more than twice the longest gap
 *     of the round before, nothing was there to be acknowledged, and the line ends.
 *   - An ACK is a point of the line if it is a 256th of the round further than the point before: a long round would gain
 *     nothing by more. Those between count for the longest gap.
 *   - The error of a line is about its longest gap over its length. A line is too short if it has fewer than eight points,
 *     is not three times its longest gap (four, before the round is over), or not a 24th of the minimum RTT.
 *   - The receiver's clock knows nothing of the way back: neither jitter nor batches nor a thin return. It is used where
 *     it ticks in milliseconds (as far as arrivals show, within a factor of two) and its line is long enough to be
 *     exact, or has the smaller error of the two; or if arrivals take more time than the errors of both allow for: then
 *     they show the pace of the return path, as where a satellite's return link has yet to be granted, or is too thin.
 *   - Data that left no faster than they arrived say how fast the sender was. If they left in nine tenths of the time
 *     or more, the rate is a lower bound only (sender). Departures are on the same host's clock as arrivals, so this
 *     needs no state for each segment.
 *   - A line shows the rate of the path if the round before agrees within 15 %, or if it has sixteen points and is as long
 *     as a sixteenth of the minimum RTT; else it is unsettled. It is exact if it is twelve times its longest gap.
 *     Alone it shows none while the receiver's clock contradicts the arrivals: in the first round a thin return path
 *     spreads the ACKs of a large initial window, which left as one burst, over as much of the round as it needs.
 *
 * Once it has a quarter of the round's bytes a line may show the rate of the path before the round is over, where ACKs
 * have just paused, so that the line ends with a batch. It is asked once in a 256th of the round.
 *
 * Use: embed a struct ack_line, ack_line_restart it when slow start begins, give ack_line_on_ack every ACK. Where it
 * brings news, `result` says how well the line determines `rate`.
 */
#ifndef ONRAMP_ACK_LINE_H
#define ONRAMP_ACK_LINE_H

#include "round.h"

#define ACK_LINE_READS (ROUND_READS | READS(now_us) | READS(min_rtt_us) | READS(flags) | READS(receiver_clock))

/* Bytes of a round are counted in so many parts, so that sums fit. */
#define ACK_LINE_PARTS 4096
/* Points that a round is long enough for; where it has few bytes, twice as many. */
#define ACK_LINE_POINTS 256
/* What of a round is left out at its begin, and at its end. */
#define ACK_LINE_EDGE 16
/* Points of a line, at least. */
#define ACK_LINE_LEAST 8
/* Points with which a line shows the rate without the previous round, or before the round is over. */
#define ACK_LINE_ENOUGH 16
/* What a line must be at least: a part of the minimum RTT, without the round before a larger one. */
#define ACK_LINE_RTT_PART 24
#define ACK_LINE_ALONE_PART 16
/* Gaps that a line must be long at least, when the round is over and before, and to be exact. */
#define ACK_LINE_GAPS 3
#define ACK_LINE_GAPS_BEFORE 4
#define ACK_LINE_GAPS_EXACT 12
/* Percent of the time of arrival in which data left; from here on the rate is the sender's. */
#define ACK_LINE_SENDER_PCT 90
/* A tick of the receiver's clock. */
#define ACK_LINE_TICK_US 1000
/* Times on a line, at most: 33 s. */
#define ACK_LINE_TIME_MAX_US (1U << 25)
/* kB/s; 17 GB/s. */
#define ACK_LINE_RATE_MAX (1U << 24)

enum ack_line_news {
	ACK_LINE_NO_NEWS,
	ACK_LINE_SOONER, /* the current round already shows the rate of the path */
	ACK_LINE_OVER,	 /* a round ended with the ACK before */
};

enum ack_line_result {
	ACK_LINE_NOTHING,
	ACK_LINE_SENDER,    /* the path carries as much, at least */
	ACK_LINE_UNSETTLED, /* the previous round showed another rate */
	ACK_LINE_PATH,
};

struct ack_line {
	/* x: parts of the round, y: arrival, z: the receiver's clock, r: RTT over that of the first */
	u64 sum_xx, sum_xy, sum_xz, sum_y, sum_z;
	s64 sum_xr, sum_r;
	u64 begin_us;	 /* arrival of the line's first ACK */
	u64 last_us;	 /* of the newest ACK that acknowledged something */
	u64 first_us;	 /* of the first that began a round, with the receiver's clock then */
	u32 first_clock; /* 0: not known */
	u32 begin_clock; /* of the line's first ACK */
	u32 last_clock;	 /* of the newest */
	u32 sum_x;
	u32 count;	   /* points of the line */
	u32 from;	   /* bytes acknowledged when the round began, modulo 2^32 */
	u32 bytes;	   /* of the round */
	u32 last_acked;	   /* newest, modulo 2^32, as are the next two */
	u32 point_acked;   /* by the newest point */
	u32 asked_acked;   /* when the line was asked before the round was over */
	u32 first_rtt_us;  /* of the line */
	u32 gap_us;	   /* longest between two ACKs on the line, or the pause that ended it */
	u32 clock_gap_us;  /* by the receiver's clock */
	u32 gap_before_us; /* of the round before */
	u32 span_us;	   /* from the line's first point to its newest */
	u32 clock_span_us; /* by the receiver's clock */
	u32 before;	   /* kB/s by the round that ended last, if it was not the sender's; 0: none */
	u32 rate;	   /* kB/s by the newest news; 0: none */
	u32 rounds;	   /* ended since slow start began */
	u8 result;	   /* enum ack_line_result, of the newest news */
	u8 exact;	   /* whether that line is long compared with its gaps */
	u8 begun;	   /* whether there is a round */
	u8 ended;	   /* whether the line of the current round has ended */
};

/* The receiver's clock stays known: it is the same in the next slow start. */
static __always_inline void ack_line_restart(struct ack_line *line)
{
	line->gap_us = 0;
	line->gap_before_us = 0;
	line->before = 0;
	line->rate = 0;
	line->rounds = 0;
	line->result = ACK_LINE_NOTHING;
	line->exact = 0;
	line->begun = 0;
}

/* A round begins with this ACK; the one before, if there is one, has been evaluated. */
static __always_inline void ack_line_turn(struct ack_line *line, const struct ack *ack)
{
	if (line->begun) {
		line->rounds++;
		line->gap_before_us = line->gap_us;
		line->before = line->result >= ACK_LINE_UNSETTLED ? line->rate : 0;
	}
	if (!line->first_clock) {
		line->first_clock = ack->receiver_clock;
		line->first_us = ack->now_us;
	}
	line->begun = 1;
	line->ended = 0;
	line->from = (u32)ack->bytes_acked;
	line->bytes = (u32)max_u64(ack->bytes_outstanding, 1);
	line->last_acked = line->from;
	line->asked_acked = line->from;
	line->last_us = ack->now_us;
	line->last_clock = ack->receiver_clock;
	line->count = 0;
	line->gap_us = 0;
	line->clock_gap_us = 0;
	line->span_us = 0;
	line->clock_span_us = 0;
	line->sum_x = 0;
	line->sum_xx = line->sum_xy = line->sum_xz = line->sum_y = line->sum_z = 0;
	line->sum_xr = line->sum_r = 0;
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

/*
 * Whether the receiver's clock ticks in milliseconds, as far as arrivals show: they are stretched by no more than the RTT
 * has risen, or within a factor of two.
 */
static __always_inline bool ack_line_clock_known(const struct ack_line *line, const struct ack *ack)
{
	u64 arrived_us = ack->now_us - line->first_us;
	u64 ticked_us = ack_line_ticks(ack->receiver_clock - line->first_clock);

	return line->first_clock && ack->receiver_clock && arrived_us > 8 * ACK_LINE_TICK_US &&
	       ticked_us <= arrived_us * 2 &&
	       (arrived_us <= ticked_us * 2 || arrived_us <= ticked_us + ack_line_risen_us(ack) + ACK_LINE_TICK_US);
}

/*
 * By how much longer ACKs take on the way back than the first did: what they arrive later than the receiver's clock has
 * it, less a tick, at most what the RTT has risen by. 0 where that clock is not known.
 */
static __always_inline u64 ack_line_return_us(const struct ack_line *line, const struct ack *ack)
{
	u64 late_us = ack->now_us - line->first_us;
	u64 ticked_us = ack_line_ticks(ack->receiver_clock - line->first_clock) + ACK_LINE_TICK_US;

	if (!ack_line_clock_known(line, ack) || late_us <= ticked_us)
		return 0;
	return min_u64(late_us - ticked_us, ack_line_risen_us(ack));
}

/* Whether the receiver's clock has ticked at another pace than the arrivals came, since slow start began. */
static __always_inline bool ack_line_clock_contradicts(const struct ack_line *line, const struct ack *ack)
{
	return line->first_clock && ack->receiver_clock && ack->now_us - line->first_us > 8 * ACK_LINE_TICK_US &&
	       !ack_line_clock_known(line, ack);
}

/* The error of a line, its longest gap over its length, in 32nds; all of it at most. */
static __always_inline u64 ack_line_error(u64 gap_us, u64 span_us)
{
	return span_us ? min_u64(gap_us * 32 / span_us + 1, 32) : 32;
}

/* Whether the line by the receiver's clock is to be used, where these are the covariances of both. */
static __always_inline bool ack_line_by_clock(const struct ack_line *line, const struct ack *ack, s64 xy, s64 xz)
{
	u64 gap_us = max_u64(line->clock_gap_us, ACK_LINE_TICK_US);
	bool exact = gap_us * ACK_LINE_GAPS_EXACT <= line->clock_span_us;
	bool better = gap_us * line->span_us < (u64)line->gap_us * line->clock_span_us;
	u64 error = ack_line_error(line->gap_us, line->span_us);
	u64 clock_error = ack_line_error(gap_us, line->clock_span_us);
	bool bent = xy > 0 && xz > 0 && (u64)xy * (32 - error) > (u64)xz * (32 + clock_error);

	return (exact || better || bent) && ack_line_clock_known(line, ack);
}

/* Whether a rate is within 15 % of the previous round's. */
static __always_inline bool ack_line_agrees(const struct ack_line *line, u64 rate)
{
	return line->before && line->before * 100ULL <= rate * 115 && rate * 100 <= line->before * 115ULL;
}

/*
 * Makes news of the line: all of the round if it is over, else only the rate of the path. True: there are. Slopes are
 * times for the whole round: a covariance of parts and times over the variance of parts, both times the square of the
 * count, the latter in units of ACK_LINE_PARTS.
 */
__noinline bool ack_line_estimate(struct ack_line *line, const struct ack *ack, bool over)
{
	u64 n, xx, gap_us, span_us, spent_us, sent_us, rate;
	s64 xy, xz, xr, left;
	u8 result;

	if (!line || !ack)
		return false;
	n = line->count;
	xx = (n * line->sum_xx - (u64)line->sum_x * line->sum_x) / ACK_LINE_PARTS;
	xy = (s64)(n * line->sum_xy - line->sum_x * line->sum_y);
	xz = (s64)(n * line->sum_xz - line->sum_x * line->sum_z);
	xr = (s64)n * line->sum_xr - (s64)line->sum_x * line->sum_r;
	left = xy - xr;
	gap_us = line->gap_us;
	span_us = line->span_us;
	if (ack_line_by_clock(line, ack, xy, xz)) {
		xy = xz;
		gap_us = max_u64(line->clock_gap_us, ACK_LINE_TICK_US);
		span_us = line->clock_span_us;
	}
	if (n < ACK_LINE_LEAST || xy <= 0 || !xx || !ack->min_rtt_us || !span_us ||
	    span_us < gap_us * (over ? ACK_LINE_GAPS : ACK_LINE_GAPS_BEFORE) ||
	    span_us * ACK_LINE_RTT_PART < ack->min_rtt_us) {
		if (over) {
			line->result = ACK_LINE_NOTHING;
			line->rate = 0;
		}
		return over;
	}
	spent_us = max_u64((u64)xy / xx, 1);
	sent_us = left > 0 ? (u64)left / xx : 0;
	rate = min_u64((u64)line->bytes * 1000 / spent_us, ACK_LINE_RATE_MAX);
	if (sent_us * 100 > spent_us * ACK_LINE_SENDER_PCT)
		result = ACK_LINE_SENDER;
	else if ((n >= ACK_LINE_ENOUGH && span_us * ACK_LINE_ALONE_PART >= ack->min_rtt_us &&
		  !ack_line_clock_contradicts(line, ack)) ||
		 ack_line_agrees(line, rate))
		result = ACK_LINE_PATH;
	else
		result = ACK_LINE_UNSETTLED;
	if (!over && result != ACK_LINE_PATH)
		return false;
	line->result = result;
	line->rate = (u32)rate;
	line->exact = gap_us * ACK_LINE_GAPS_EXACT <= span_us;
	return true;
}

/* Whether this is a 256th of the round further than that. */
static __always_inline bool ack_line_further(const struct ack_line *line, const struct ack *ack, u32 acked)
{
	return (u32)ack->bytes_acked - acked >= line->bytes / ACK_LINE_POINTS;
}

/* Makes an ACK a point of the line. */
__noinline int ack_line_point(struct ack_line *line, const struct ack *ack)
{
	u64 x, y, z;
	u32 done;
	s64 r;

	if (!line || !ack)
		return 0;
	done = (u32)ack->bytes_acked - line->from;
	if (!line->count) {
		line->begin_us = ack->now_us;
		line->begin_clock = ack->receiver_clock;
		line->first_rtt_us = (u32)ack->rtt_us;
	}
	x = min_u64((u64)done * ACK_LINE_PARTS / (line->bytes ? line->bytes : 1), ACK_LINE_PARTS);
	y = min_u64(ack->now_us - line->begin_us, ACK_LINE_TIME_MAX_US);
	z = min_u64(ack_line_ticks(ack->receiver_clock - line->begin_clock), ACK_LINE_TIME_MAX_US);
	r = (s64)min_u64((u32)ack->rtt_us, ACK_LINE_TIME_MAX_US) -
	    (s64)min_u64(line->first_rtt_us, ACK_LINE_TIME_MAX_US);
	line->count++;
	line->point_acked = (u32)ack->bytes_acked;
	line->span_us = (u32)y;
	line->clock_span_us = (u32)z;
	line->sum_x += (u32)x;
	line->sum_y += y;
	line->sum_z += z;
	line->sum_r += r;
	line->sum_xx += x * x;
	line->sum_xy += x * y;
	line->sum_xz += x * z;
	line->sum_xr += (s64)x * r;
	return 0;
}

/* The longest gap by the receiver's clock, which has ticked since the ACK before. */
static __always_inline void ack_line_tick(struct ack_line *line, const struct ack *ack)
{
	u64 ticked_us = ack_line_ticks(ack->receiver_clock - line->last_clock);

	line->clock_gap_us = (u32)max_u64(line->clock_gap_us, min_u64(ticked_us, ACK_LINE_TIME_MAX_US));
}

/* Takes an ACK of the line, which came so long after the one before. */
static __always_inline void ack_line_add(struct ack_line *line, const struct ack *ack, u32 gap_us)
{
	if (ack->rtt_us < 0)
		return;
	if (line->count) {
		if (gap_us > line->gap_us)
			line->gap_us = gap_us;
		if (ack->receiver_clock != line->last_clock)
			ack_line_tick(line, ack);
		if (!ack_line_further(line, ack, line->point_acked))
			return;
	} else if ((u32)ack->bytes_acked - line->from < line->bytes / ACK_LINE_EDGE) {
		return;
	}
	ack_line_point(line, ack);
}

/* Whether ACKs have paused for so long that nothing was there to be acknowledged. */
static __always_inline bool ack_line_paused(const struct ack_line *line, const struct ack *ack, u64 gap_us)
{
	u64 most_us = max_u64(ack->min_rtt_us / 4, 2 * (u64)line->gap_before_us);

	/* The receiver's clock can only make a pause shorter. */
	if (gap_us <= most_us || !line->count)
		return false;
	return !ack_line_clock_known(line, ack) ||
	       ack_line_ticks(ack->receiver_clock - line->last_clock) + ACK_LINE_TICK_US > most_us;
}

/* Whether the receiver has waited with an ACK: for more than twice as long as with any other of the line. */
static __always_inline bool ack_line_waited(const struct ack_line *line, const struct ack *ack, u32 gap_us)
{
	u64 ticked_us = ack_line_ticks(ack->receiver_clock - line->last_clock);

	return gap_us > 2 * (u64)line->gap_us || ticked_us > 2 * max_u64(line->clock_gap_us, ACK_LINE_TICK_US);
}

/* An ACK of the round, of which the line may not have ended. True: it brings news. */
static __always_inline bool ack_line_take(struct ack_line *line, const struct ack *ack)
{
	u32 gap_us = (u32)min_u64(ack->now_us - line->last_us, ACK_LINE_TIME_MAX_US);
	u32 done = (u32)ack->bytes_acked - line->from;
	bool result = false;

	if (done > line->bytes - line->bytes / ACK_LINE_EDGE && ack_line_waited(line, ack, gap_us)) {
		line->ended = 1;
		return false;
	}
	if (ack->flags & ACK_APP_LIMITED && !(ack->flags & ACK_CWND_LIMITED)) {
		line->ended = 1;
		line->count = 0;
		return false;
	}
	if (ack_line_paused(line, ack, gap_us)) {
		line->ended = 1;
		line->gap_us = (u32)max_u64(line->gap_us, gap_us);
		return false;
	}
	if (ack_line_further(line, ack, line->asked_acked) && line->count >= ACK_LINE_ENOUGH &&
	    gap_us * 2 >= line->gap_us && done > line->bytes / 4) {
		line->asked_acked = (u32)ack->bytes_acked;
		result = ack_line_estimate(line, ack, false);
	}
	ack_line_add(line, ack, gap_us);
	return result;
}

/* An ACK within the round. True: it brings news. */
static __always_inline bool ack_line_measure(struct ack_line *line, const struct ack *ack)
{
	bool result;

	if ((u32)ack->bytes_acked == line->last_acked)
		return false;
	result = !line->ended && ack_line_take(line, ack);
	line->last_acked = (u32)ack->bytes_acked;
	line->last_us = ack->now_us;
	line->last_clock = ack->receiver_clock;
	return result;
}

/* One ACK: enum ack_line_news. */
static __always_inline u32 ack_line_on_ack(struct ack_line *line, const struct ack *ack)
{
	u32 news = ACK_LINE_NO_NEWS;

	if (line->begun && !round_is_over(line->from + line->bytes, ack))
		return ack_line_measure(line, ack) ? ACK_LINE_SOONER : ACK_LINE_NO_NEWS;
	if (line->begun) {
		ack_line_estimate(line, ack, true);
		news = ACK_LINE_OVER;
	}
	ack_line_turn(line, ack);
	return news;
}

#endif
