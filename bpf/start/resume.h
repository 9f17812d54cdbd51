/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Careful Resume (RFC 9959) for TCP: over a path whose rate and RTT are remembered, a connection goes at once to half of
 * what the path holds, and gives that up at the first sign that the path is another.
 *
 *	             first window acknowledged,            window reached,            all of it
 *	             RTT as remembered                     and sent                   acknowledged
 *	reconnaissance ──────────────────────► unvalidated ─────────────► validating ────────────► over
 *	      │ loss, another RTT,                  │ loss, timeout, mark     │
 *	      ▼ nothing to gain                     ▼                         ▼
 *	     over                            retreat: at most half of what has been delivered since, over
 *
 *   - The first window is half of what the path holds as well, but no more than the receiver's first window takes: 64 kB,
 *     which no receiver exceeds before its window is scaled (RFC 7323, section 2.2). RFC 9959 leaves the first window as it is;
 *     reconnaissance alone takes from small transfers what they could gain.
 *   - It is paced at three quarters of the remembered rate, or at half of it where that takes no more than half an RTT: a path
 *     that has become slower has to queue less of it. What its own ACKs let go then leaves little faster than they arrive.
 *   - The jump follows the receiver's window as that opens, in whole segments: the partial segment at the window's edge
 *     would keep back the last of the data for a round trip (Nagle). What the base adds meanwhile does not pass it. So it is one
 *     jump where the receiver has the room, and some where it has not, each of which the ones before have validated.
 *   - It is paced at the remembered rate, so that it takes half an RTT to send. Without a first window of its own there is no
 *     start where half of the path is no more than twice the window: doubling comes as far within an RTT, and sooner.
 *   - What a connection does not use of its jump it gives up: once it has had time to send all of it, has nothing more to send, or
 *     has no claim on the path any more, its window is the one that doubling would have come to by now. RFC 9959 (section
 *     4.4) takes the flight at that time, of which nothing is left where the application pauses.
 *   - The path may have become slower: its first window's ACKs arrive more slowly than it was sent. Then the jump goes to half of
 *     what half as much again as their rate holds, and after a first window of its own it is paced at their rate. And it goes no
 *     further once RTTs show a queue.
 *   - An algorithm's exit comes first: it ends this.
 *
 * A pure function over its state, as algorithms are (algorithm/algorithm.h). Windows are in segments.
 */
#ifndef ONRAMP_START_RESUME_H
#define ONRAMP_START_RESUME_H

#include "../algorithm/algorithm.h"
#include "../record.h"

/* What is remembered of a path, and how far a connection has come with it. */
struct start {
	u64 rate;	 /* remembered, bytes per second; never 0 */
	u64 claim_ns;	 /* the claim on a learned path (path.h), by the time at which it is void; 0: it has none */
	u64 late_us;	 /* monotonic time from which that claim is void */
	u32 rtt_us;	 /* remembered minimum; never 0 */
	u32 mark;	 /* bytes sent, modulo 2^32: what the present phase waits for */
	u32 target;	 /* of the jump, segments; 0: none yet */
	u32 delivered;	 /* when the jump began, segments */
	u32 window;	 /* when the jump began, segments */
	u32 pipe;	 /* in flight when the jump began, segments */
	u32 until_us;	 /* monotonic time modulo 2^32 at which the jump counts as sent */
	u32 phase;	 /* enum start_phase, never START_UNKNOWN */
	u32 end;	 /* enum start_end */
	u32 first_us;	 /* when the first ACK came, monotonic time modulo 2^32 */
	u32 first_bytes; /* acknowledged by it, modulo 2^32 */
	u32 late_acks;	 /* in a row whose RTT shows a queue, in the jump */
	u32 policies;	 /* a bit for each of enum start_policy */
	u16 halvings;	 /* of what is used of the path, below half of it */
	u8 arrivals;	 /* of the first window's ACKs: 0 none, 1 the first, 2 the last */
	bool slower;	 /* they have arrived more slowly than the first window was sent */
};
_Static_assert(sizeof(struct start) == 80, "no implicit padding");

/* What a start wants. */
struct start_verdict {
	u64 pacing_rate; /* bytes per second; 0: as without */
	u32 cwnd;	 /* the window, before the base adds what is acknowledged; 0: as it is */
	u32 unused;
};

/* Of the product of rate and RTT a jump goes to half (RFC 9959, section 4.3). */
#define START_PART 2
/* A jump alone goes further than so many times the window. */
#define START_GAIN 2
/* Rate of the first window, of the remembered: the kernel paces no first ten segments, and their queue has to go. */
#define START_FIRST_PCT 75
/* The same where the window leaves within half an RTT even so. */
#define START_FIRST_GENTLE_PCT 50
/* Of that rate: where the first window's ACKs arrive at less than this the path has become slower. */
#define START_SLOWER_PCT 89
/* Rate of what leaves while they arrive, in hundredths of the rate at which they do. */
#define START_MEANWHILE_PCT 113
/* The largest first window that a receiver can offer, bytes. */
#define START_FIRST_BYTES_MAX 65535
/* The most that is used of the remembered rate, in hundredths of the rate at which the first window's ACKs arrive. */
#define START_ARRIVED_PCT 150
/* Segments that those ACKs are of at least, for a rate. */
#define START_ARRIVED_MIN 4
/* A jump has made a queue once so many ACKs in a row have RTTs above the minimum by this, or by this part of it. */
#define START_QUEUE_ACKS 4
#define START_QUEUE_US 4000
#define START_QUEUE_PART 8
/* A start saves an RTT or two, and a tail that is lost costs a timeout, 200 ms: over shorter RTTs there is nothing to gain. */
#define START_RTT_US_MIN 2000
/* RTTs that the remembered one may be shorter or longer, as a factor (RFC 9959, section 4.2.1). */
#define START_RTT_FACTOR 2

/* What there is to do at the start, a bit for each of enum start_policy. */
#define START_BOTH (1 << POLICY_RESUME | 1 << POLICY_WINDOW)

static __always_inline bool start_has(const struct start *start, enum start_policy policy)
{
	return start->policies >> policy & 1;
}

/* A start over a path of which this is remembered, in the place of what there was. */
static __always_inline void start_remembers(struct start *start, u64 rate, u32 rtt_us, u32 policies)
{
	*start = (struct start){
		.rate = rate,
		.rtt_us = rtt_us,
		.policies = policies,
		.phase = START_RECONNAISSANCE,
	};
}

/* What the path holds at that rate, bytes. */
static __always_inline u64 start_held(const struct start *start)
{
	return start->rate * min_u64(start->rtt_us, 1U << 24) / 1000000;
}

/* Half of what the path holds or less, segments. */
static __always_inline u32 start_target(const struct start *start, u32 mss)
{
	u64 bytes = start_held(start) / START_PART >> (start->halvings & 31);

	return (u32)min_u64(bytes / max_u64(mss, 1), NO_THRESHOLD - 1);
}

/* Whether a connection whose window is `cwnd` gains by it, when it begins. */
static __always_inline bool start_gains(const struct start *start, u32 mss, u32 cwnd)
{
	return start->rtt_us >= START_RTT_US_MIN &&
	       start_target(start, mss) > (start_has(start, POLICY_WINDOW) ? cwnd : (u64)cwnd * START_GAIN);
}

/* Whether an RTT can be that of the remembered path; 0: none is known yet, and it may be. */
static __always_inline bool start_knows_rtt(const struct start *start, u32 rtt_us)
{
	return !rtt_us || ((u64)rtt_us <= (u64)start->rtt_us * START_RTT_FACTOR &&
			   (u64)rtt_us * START_RTT_FACTOR >= start->rtt_us);
}

static __always_inline void start_ends(struct start *start, u32 end)
{
	start->phase = START_OVER;
	start->end = end;
}

/*
 * The first window, where it would be `cwnd`: before anything is sent. Its segments are even in number: a receiver delays the ACK of a
 * last one that arrives alone, and the path would count as slower.
 */
static __always_inline u32 start_first_window(const struct start *start, u32 mss, u32 cwnd)
{
	u64 most = min_u64(start_target(start, mss), START_FIRST_BYTES_MAX / max_u64(mss, 1)) / 2 * 2;

	return start_has(start, POLICY_WINDOW) ? (u32)max_u64(most, cwnd) : cwnd;
}

/* Whether the path holds so much that a first window of its own leaves within half an RTT at half the rate. */
static __always_inline bool start_is_gentle(const struct start *start)
{
	return start_has(start, POLICY_WINDOW) && start_held(start) > 4 * START_FIRST_BYTES_MAX;
}

/* At which a first window of its own is paced, bytes per second. */
static __always_inline u64 start_first_rate(const struct start *start)
{
	return start->rate * (start_is_gentle(start) ? START_FIRST_GENTLE_PCT : START_FIRST_PCT) / 100;
}

/* The rate at which the first window's ACKs have arrived so far, bytes per second; 0: there are too few. */
static __always_inline u64 start_arrived(const struct start *start, const struct ack *ack)
{
	u32 bytes = (u32)ack->bytes_acked - start->first_bytes;
	s32 us = (s32)((u32)ack->now_us - start->first_us);

	if (!start->arrivals || us <= 0 || bytes < START_ARRIVED_MIN * ack_mss(ack))
		return 0;
	return max_u64((u64)bytes * 1000000 / (u32)us, 1);
}

/* An ACK of the first window. The last one says how fast they have arrived; what comes later says no more of the path. */
static __always_inline void start_arrives(struct start *start, const struct ack *ack)
{
	u64 arrived = start_arrived(start, ack);

	if (start->arrivals == 0) {
		start->arrivals = 1;
		start->first_us = (u32)ack->now_us;
		start->first_bytes = (u32)ack->bytes_acked;
	} else if (start->arrivals == 1 && (s32)((u32)ack->bytes_acked - start->mark) >= 0) {
		start->arrivals = 2;
		if (arrived && arrived * 100 < start_first_rate(start) * START_SLOWER_PCT) {
			start->slower = start_has(start, POLICY_WINDOW);
			start->rate = min_u64(start->rate, arrived * START_ARRIVED_PCT / 100);
		}
	}
}

/*
 * The rate of what the first window's ACKs let go, bytes per second. They may be few because the application pauses: at the least one
 * first window leaves in an RTT.
 */
static __always_inline u64 start_meanwhile_rate(const struct start *start, const struct ack *ack)
{
	u64 arrived = start_is_gentle(start) ? start_arrived(start, ack) : 0;
	u64 least = START_FIRST_BYTES_MAX * 1000000ULL / start->rtt_us;

	if (!arrived)
		return start->rate;
	return min_u64(start->rate, max_u64(arrived * START_MEANWHILE_PCT / 100, least));
}

/* Whether the jump has made a queue. */
static __always_inline bool start_queues(struct start *start, const struct ack *ack)
{
	u64 most = ack->min_rtt_us + max_u64(ack->min_rtt_us / START_QUEUE_PART, START_QUEUE_US);

	if (ack->rtt_us < 0)
		return false;
	start->late_acks = (u32)ack->rtt_us > most ? start->late_acks + 1 : 0;
	return start->late_acks >= START_QUEUE_ACKS;
}

/* The jump begins: all of the first window has been acknowledged. */
static __always_inline void start_jump(struct start *start, const struct ack *ack)
{
	u32 target = start_target(start, ack_mss(ack));

	if (target <= ack->cwnd) {
		start_ends(start, START_NO_GAIN);
		return;
	}
	start->target = target;
	start->phase = START_UNVALIDATED;
	start->delivered = ack->delivered;
	start->window = ack->cwnd;
	start->pipe = (u32)max_u64(ack->in_flight, ack->acked);
	start->until_us = (u32)ack->now_us + 2 * ack->smoothed_rtt_us;
}

/* Gives up what has not been used of the jump, if it has begun. */
static __always_inline void start_gives_up(const struct start *start, const struct ack *ack, u32 growth,
					   struct start_verdict *verdict)
{
	u64 doubled = (u64)start->window + (ack->delivered - start->delivered);

	if (start->phase == START_UNVALIDATED && doubled < (u64)ack->cwnd + growth)
		verdict->cwnd = (u32)max_u64(doubled > growth ? doubled - growth : 0, start->window);
}

/* The window goes up as far as the receiver lets it, until it is at the target and all of that has been sent. */
static __always_inline void start_raise(struct start *start, const struct ack *ack, u32 growth,
					struct start_verdict *verdict)
{
	u64 open = ack->receive_window / ack_mss(ack);
	bool sent, overdue;

	if (start_queues(start, ack)) {
		/* It goes no further. */
		start->phase = START_VALIDATING;
		start->mark = (u32)ack->bytes_sent;
		return;
	}
	verdict->pacing_rate = start->slower ? start->rate * 100 / START_ARRIVED_PCT : start->rate;
	if (open < start->target) {
		/* The receiver's window is what is waited for; once the base has added, this one is as large. */
		verdict->cwnd = (u32)max_u64(open > growth ? open - growth : 0, INITIAL_WINDOW);
		start->until_us = (u32)ack->now_us + 2 * ack->smoothed_rtt_us;
		return;
	}
	sent = ((u64)ack->in_flight + ack->acked) * 32 >= max_u64(start->target, ack->cwnd) * 31;
	overdue = !sent && (s32)((u32)ack->now_us - start->until_us) >= 0;
	if (overdue)
		start_gives_up(start, ack, growth, verdict);
	else if (start->target > ack->cwnd)
		verdict->cwnd = start->target;
	if (sent || overdue) {
		start->phase = START_VALIDATING;
		start->mark = (u32)ack->bytes_sent;
		verdict->pacing_rate = 0;
	}
}

/*
 * One ACK in slow start, after the algorithm; the base adds `growth` segments to the window then. `idle`: nothing is on its way,
 * and nothing waits to be sent.
 */
static __always_inline void start_on_ack(struct start *start, const struct ack *ack, u32 growth, bool idle,
					 struct start_verdict *verdict)
{
	bool late = start->claim_ns && ack->now_us >= start->late_us;

	if ((late && start->phase < START_VALIDATING) || (idle && start->phase == START_UNVALIDATED)) {
		start_gives_up(start, ack, growth, verdict);
		start_ends(start, late ? START_LATE : START_VALIDATED);
		return;
	}
	if (start->phase == START_RECONNAISSANCE) {
		start_arrives(start, ack);
		if ((s32)((u32)ack->bytes_acked - start->mark) < 0) {
			verdict->pacing_rate = start_meanwhile_rate(start, ack);
			return;
		}
		if (!start_has(start, POLICY_RESUME)) {
			start_ends(start, START_VALIDATED);
			return;
		}
		if (idle || (ack->flags & ACK_APP_LIMITED && !(ack->flags & ACK_CWND_LIMITED)))
			return;
		if (!start_knows_rtt(start, ack->min_rtt_us)) {
			start_ends(start, START_RTT);
			return;
		}
		start_jump(start, ack);
	}
	if (start->phase == START_UNVALIDATED)
		start_raise(start, ack, growth, verdict);
	else if (start->phase == START_VALIDATING && (s32)((u32)ack->bytes_acked - start->mark) >= 0)
		start_ends(start, START_VALIDATED);
}

/* A reduction; the threshold would be `ssthresh`. */
static __always_inline u32 start_on_loss(struct start *start, const struct ack *ack, u32 ssthresh)
{
	u32 delivered;

	if (start->phase == START_RECONNAISSANCE) {
		start_ends(start, START_CONGESTION);
		return ssthresh;
	}
	if (start->phase == START_OVER)
		return ssthresh;
	start_ends(start, START_RETREAT);
	delivered = (u32)max_u64(ack->delivered - start->delivered, start->pipe);
	return (u32)min_u64(ssthresh, max_u64(delivered / START_PART, MIN_WINDOW));
}

#endif
