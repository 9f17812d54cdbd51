/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Rapid Start (draft-kazuho-ccwg-rapid-start-02) for TCP: in its first slow start a connection triples its window per round trip
 * in place of doubling it, over a path of which nothing is known.
 *
 *	         window tripled per RTT             loss                    all of that window
 *	                                                                    delivered or lost
 *	growing ◄──────────────────────► doubling ─────────► landing ──────────────────────────► over
 *	   │     an RTT shows a queue        │
 *	   └───────────── slow start is left ┴──► over
 *
 *   - The window grows by twice what is acknowledged while no RTT of the last one is above the minimum by an eighth, and by a
 *     millisecond; else as without. The draft asks for the least of them. But what overflows a small queue is gone before the
 *     next flight begins with one.
 *   - It triples windows that any path is taken to hold: up to 60 segments, or of up to 600,000 bytes per second. Beyond both it
 *     doubles. Of the last tripled window up to two thirds are lost where the queue is small, and the larger it is the more. Both
 *     limits are chosen, by simulated paths: they give back a tenth of the time that tripling saves, and half of what it loses.
 *   - What it sends is paced at four windows per RTT, of the window with which the round began: a third faster than the window
 *     grows. As bursts the same windows overflow small queues; and at the rate of the growth itself ACKs show the sender's rate
 *     in place of the path's for as long as that is less.
 *   - It does so only where three windows per RTT are less than the rate at which the algorithm paces, if it does. That rate is
 *     its estimate of the path, and says that there is no room for a third window.
 *   - It stays within the receiver's window, in whole segments, and within three times the largest flight since slow start
 *     began (draft-ietf-ccwg-ratelimited-increase).
 *   - After a loss the threshold is what the path has delivered of the window, times the base's factor: from nine tenths of the
 *     window it falls with each ACK of the recovery, to a third of what the base would have at least. The base's alone would
 *     be above all that the path holds, for of a tripled window up to two thirds are lost. After a mark or a timeout the base
 *     decides.
 *
 * The draft paces the first flight over one RTT. A connection gets its state here when it has more to send than that, and the
 * kernel paces no first ten segments.
 *
 * A pure function over its state, as algorithms are (algorithm/algorithm.h). Windows are in segments.
 */
#ifndef ONRAMP_START_FAST_H
#define ONRAMP_START_FAST_H

#include "resume.h"

enum fast_phase {
	FAST_GROWING, /* the window grows faster, or would, if the path did not show a queue */
	FAST_LANDING, /* a loss is being recovered, and the threshold follows what is delivered */
	FAST_OVER,    /* as without */
};

/* Why it is over. Numbers go out; those that there are stay. */
enum fast_end {
	FAST_NONE,
	FAST_EXIT,   /* slow start has ended otherwise than by a loss */
	FAST_LANDED, /* all of the window that met a loss has been delivered or lost */
	FAST_LOSS,   /* a mark, a timeout, or another loss before that */
};

struct fast {
	u32 phase;	  /* enum fast_phase */
	u32 end;	  /* enum fast_end */
	u32 flight;	  /* the largest so far, segments */
	u32 largest_us;	  /* RTT, since half_us */
	u32 before_us;	  /* RTT, the largest of the half before */
	u32 half_us;	  /* monotonic time modulo 2^32 since which largest_us is measured */
	u32 round_end;	  /* bytes sent when the round began, modulo 2^32 */
	u32 round_window; /* then, segments; 0: none has begun */
	u32 faster;	  /* segments by which the window has grown more than without */
	u32 window;	  /* when the loss was met, segments */
	u32 ssthresh;	  /* the base's, then */
	u32 delivered;	  /* then, segments */
	u32 lost;	  /* then, segments */
	u32 unused;
};
_Static_assert(sizeof(struct fast) == 56, "no implicit padding");

/* Growth per RTT, as a factor of the window; and the most of the largest flight. */
#define FAST_GROWTH 3
/* The most that is tripled, segments; or, where that is less, bytes per second. */
#define FAST_SURE_WINDOW 60
#define FAST_SURE_RATE 600000
/* Windows per RTT at which data leave meanwhile. */
#define FAST_PACED_WINDOWS 4
/* The path shows a queue once an RTT is above the minimum by this, and by this part of it. */
#define FAST_QUEUE_US 1000
#define FAST_QUEUE_PART 8
/* Keeps a product within 64 bits. */
#define FAST_WINDOW_MAX (1ULL << 40)
/* Where the landing begins, of the window; its least, of the base's threshold. */
#define FAST_LANDING_TENTHS 9
#define FAST_LANDING_LEAST 3

static __always_inline void fast_ends(struct fast *fast, u32 end)
{
	fast->phase = FAST_OVER;
	fast->end = end;
}

/* The largest RTTs of this half of an RTT and of the half before. */
static __always_inline void fast_sees_rtt(struct fast *fast, const struct ack *ack)
{
	if (ack->rtt_us <= 0)
		return;
	if ((u32)ack->now_us - fast->half_us >= ack->min_rtt_us / 2) {
		fast->before_us = fast->largest_us;
		fast->largest_us = (u32)ack->rtt_us;
		fast->half_us = (u32)ack->now_us;
	} else {
		fast->largest_us = (u32)max_u64(fast->largest_us, (u32)ack->rtt_us);
	}
}

/* Whether the path shows a queue. */
static __always_inline bool fast_sees_queue(const struct fast *fast, const struct ack *ack)
{
	u64 most = ack->min_rtt_us + max_u64(ack->min_rtt_us / FAST_QUEUE_PART, FAST_QUEUE_US);

	return max_u64(fast->largest_us, fast->before_us) > most;
}

/* Bytes per second at which so many windows of these segments leave in an RTT; 0: no RTT is known. */
static __always_inline u64 fast_rate(const struct ack *ack, u32 window, u32 windows)
{
	u64 bytes = min_u64((u64)window * ack_mss(ack) * windows, FAST_WINDOW_MAX);

	return ack->min_rtt_us ? bytes * 1000000 / ack->min_rtt_us : 0;
}

/* Whether a window is one that any path is taken to hold. */
static __always_inline bool fast_is_sure(const struct ack *ack)
{
	return ack->cwnd <= FAST_SURE_WINDOW || fast_rate(ack, ack->cwnd, 1) <= FAST_SURE_RATE;
}

/* A round begins with the first ACK, and with each that acknowledges what was sent after it began. */
static __always_inline void fast_counts_rounds(struct fast *fast, const struct ack *ack)
{
	if (fast->round_window && (s32)((u32)ack->bytes_acked - fast->round_end) <= 0)
		return;
	fast->round_end = (u32)ack->bytes_sent;
	fast->round_window = (u32)max_u64(ack->cwnd, 1);
}

/*
 * One ACK in slow start, after the algorithm, which paces at a rate, bytes per second; 0: it does not. `clamp`: the most that the
 * window may be. The base adds what is acknowledged.
 */
static __always_inline void fast_on_ack(struct fast *fast, const struct ack *ack, u64 rate, u32 clamp,
					struct start_verdict *verdict)
{
	u64 most, window = (u64)ack->cwnd + ack->acked;

	fast->flight = (u32)max_u64(fast->flight, (u64)ack->in_flight + ack->acked);
	fast_sees_rtt(fast, ack);
	fast_counts_rounds(fast, ack);
	verdict->pacing_rate = fast_rate(ack, fast->round_window, FAST_PACED_WINDOWS);
	if (rate && rate <= verdict->pacing_rate)
		verdict->pacing_rate = 0;
	if (!ack->min_rtt_us || !fast_is_sure(ack) || fast_sees_queue(fast, ack) ||
	    (rate && rate < fast_rate(ack, ack->cwnd, FAST_GROWTH)) ||
	    (ack->flags & ACK_APP_LIMITED && !(ack->flags & ACK_CWND_LIMITED)))
		return;
	most = min_u64((u64)fast->flight * FAST_GROWTH, ack->receive_window / ack_mss(ack));
	most = min_u64(min_u64(most, clamp), ack->ssthresh);
	most = most > ack->acked ? most - ack->acked : 0;
	window = min_u64(window, most);
	if (window > ack->cwnd) {
		verdict->cwnd = (u32)window;
		fast->faster += (u32)window - ack->cwnd;
	}
}

/* A loss is met: the window is whole, and the base's threshold would be `ssthresh`. Whether it lands. */
static __always_inline bool fast_on_loss(struct fast *fast, const struct ack *ack, u32 ssthresh)
{
	if (fast->phase != FAST_GROWING || !fast->faster || !ack->cwnd) {
		fast_ends(fast, FAST_LOSS);
		return false;
	}
	fast->phase = FAST_LANDING;
	fast->window = ack->cwnd;
	fast->ssthresh = (u32)min_u64(ssthresh, ack->cwnd);
	fast->delivered = ack->delivered;
	return true;
}

/*
 * The threshold of the landing; `delivered` and `lost` are the socket's counts. Of the window each segment delivered takes the
 * difference of nine tenths and the base's factor, each one lost nine tenths: once all is accounted for, what is left is
 * what was delivered times that factor.
 */
static __always_inline u32 fast_lands(struct fast *fast, u32 delivered, u32 lost)
{
	u64 window = fast->window, factor = (u64)fast->ssthresh * 10, from = window * FAST_LANDING_TENTHS;
	u64 gone = min_u64(lost - fast->lost, window), come = min_u64(delivered - fast->delivered, window - gone);
	u64 tenths;

	/* In tenths of a segment, `window` times. */
	tenths = from * (window - gone) - (from > factor ? from - factor : 0) * come;
	if (come + gone >= window)
		fast_ends(fast, FAST_LANDED);
	return (u32)max_u64(max_u64(tenths / max_u64(window, 1) / 10, fast->ssthresh / FAST_LANDING_LEAST), MIN_WINDOW);
}

#endif
