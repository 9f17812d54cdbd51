/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The contract between a slow-start algorithm and whatever drives it: the kernel shells (kernel/), the unit tests,
 * replay and the simulator.
 *
 * An algorithm is a set of pure functions over its own state. It is given an acknowledgment (struct ack) and answers
 * with a verdict; it never touches a window itself. Time is an argument. For an algorithm called NAME:
 *
 *   struct NAME                 state of one flow, zeroed when the flow starts
 *   struct NAME_params          parameters, read anew on every call, so a change is felt by running flows
 *   NAME_restart(state)         slow start begins (anew): after the handshake, a timeout, an idle restart
 *   NAME_on_ack(...)            one acknowledgment in slow start (with TRAIT_ALWAYS: any); fills the verdict
 *   NAME_on_loss(state, ...)    slow start ended by loss, ECN or timeout; returns the slow start threshold
 *   NAME_CONTROL                name of the congestion control, "onramp_" and at most 8 characters
 *   NAME_PARAMETERS(X)          the one declaration of its parameters
 *   NAME_OUTCOMES(X)            what a verdict of its own can be called, beyond the common outcomes
 *   NAME_EXPORTS(X)             what of its state is worth showing to a person
 *   NAME_TRACK(X)               one value of it over time, and the limit at which slow start ends
 *   NAME_PICTURE(G, B, P)       what of it is drawn
 *   NAME_TRAITS                 what of the shell it needs, so that no other algorithm pays for it
 *   NAME_READS                  fields of an ACK that NAME_on_ack reads; the kernel gives it no others
 *
 * Where it has TRAIT_EXTRA, its state has a second part, which only flows with some parameters have:
 *
 *   struct NAME_extra           zeroed when it is made, which is as good as restarted; exports are of the first part
 *   NAME_wants_extra(params)    whether flows with these parameters have it
 *   NAME_restart_extra(extra)   with NAME_restart, where there is one
 *   NAME_on_ack_extra(...)      while it is wanted, and there was memory for it: before NAME_on_ack, with the same verdict
 *
 * Where it has TRAIT_SLEEPS, it need not be asked about each ACK (shell/sleep.h):
 *
 *   NAME_sleeps_until(state, params, verdict)
 *                       after a verdict that wants nothing and is no exit: the time, or the window, until which no ACK with an
 *                       RTT sample in this slow start changes the state or gets another verdict, as long as the parameters
 *                       are these; 0: the next one may (fuzzing compares)
 *
 * Where it has TRAIT_DOZES, its state has a `struct doze doze` (doze.h), which says over which ACKs NAME_on_ack passes: these change
 * nothing else, and get the verdict of the one before.
 *
 * No floating point, no unbounded loop, no division by a value that can be zero, no comparison of times that breaks
 * when a counter wraps.
 */
#ifndef ONRAMP_ALGORITHM_H
#define ONRAMP_ALGORITHM_H

#include "base.h"

/* Bits of struct ack.flags. */
enum ack_flag {
	/* The sender had less to send than the window allowed (tcp_sock.app_limited). */
	ACK_APP_LIMITED = 1 << 0,
	/* The newest rate sample, that of the ACK before, is marked application limited (tcp_sock.rate_app_limited). */
	ACK_RATE_APP_LIMITED = 1 << 1,
	/* The sender used the whole window lately (tcp_sock.is_cwnd_limited). */
	ACK_CWND_LIMITED = 1 << 2,
	/* The sender spaces its packets (sk_pacing_status is not SK_PACING_NONE). */
	ACK_PACED = 1 << 3,
};

/*
 * One row per field of what crosses between an algorithm and its caller, and from there to user space: X(name, column, type,
 * unit, values, side, help), as record.h explains.
 */
#define RECORD_FIELD(name, column, type, unit, values, side, help) type name;

#define ACK_FIELDS(X)                                                                                                  \
	X(now_us, at_us, u64, "us", PLAIN, BEFORE, "arrival, monotonic clock")                                         \
	X(bytes_acked, acknowledged_bytes, u64, "bytes", PLAIN, BEFORE,                                                \
	  "cumulatively acknowledged; of a connection that this host opened with its SYN, and at the end with its "    \
	  "FIN, one byte each")                                                                                        \
	X(bytes_sent, sent_bytes, u64, "bytes", PLAIN, BEFORE, "sent, retransmissions not counted again")              \
	X(pacing_rate, pacing_rate_bytes_per_s, u64, "bytes/s", ZERO, BEFORE, "in force; 0: not yet")                  \
	X(bytes_outstanding, outstanding_bytes, u32, "bytes", PLAIN, BEFORE, "between snd_una and snd_nxt")            \
	X(delivered, delivered_segments, u32, "segments", PLAIN, BEFORE,                                               \
	  "delivered, selective acknowledgments included; wraps")                                                      \
	X(acked, newly_acknowledged_segments, u32, "segments", PLAIN, BEFORE, "newly acknowledged by this ACK")        \
	X(rtt_us, rtt_us, s32, "us", NEGATIVE, BEFORE, "sample of this ACK; negative: none (retransmitted data)")      \
	X(smoothed_rtt_us, smoothed_rtt_us, u32, "us", ZERO, BEFORE, "0: none yet")                                    \
	X(min_rtt_us, min_rtt_us, u32, "us", ZERO, BEFORE, "0: none yet")                                              \
	X(cwnd, cwnd_segments, u32, "segments", PLAIN, BEFORE, "congestion window")                                    \
	X(ssthresh, ssthresh_segments, u32, "segments", THRESHOLD, BEFORE, "slow start threshold")                     \
	X(in_flight, in_flight_segments, u32, "segments", PLAIN, BEFORE, "in flight")                                  \
	X(mss, mss_bytes, u32, "bytes", PLAIN, BEFORE, "maximum segment size, never 0")                                \
	X(gso_max_size, gso_max_bytes, u32, "bytes", PLAIN, BEFORE, "largest burst handed to the device at once")      \
	X(flags, flags, u32, "", BITS, BEFORE,                                                                         \
	  "bits: 1 application limited, 2 rate sample application limited, 4 window limited, 8 paced")                 \
	X(receiver_clock, receiver_clock, u32, "", ZERO, BEFORE,                                                       \
	  "the receiver's clock when it acknowledged, in its own ticks (RFC 7323: TSval); 0: not known")               \
	X(receive_window, receive_window_bytes, u32, "bytes", ZERO, BEFORE,                                            \
	  "offered by the receiver, from what is acknowledged; 0: none, or not known")

/* One ACK, seen before the data that it releases is sent. Counters run from the start of the connection. */
struct ack {
	ACK_FIELDS(RECORD_FIELD)
};

/* A field of it, as a bit of NAME_READS: READS(now_us) | READS(cwnd). */
#define READS(name) (1U << __builtin_offsetof(struct ack, name) / 4)
#define READS_ALL 0xffffffffU
_Static_assert(sizeof(struct ack) <= 4 * 32, "a bit for each field");

/* Its MSS, of what is read from files as well: nothing is divided by 0. */
static __always_inline u32 ack_mss(const struct ack *ack)
{
	return ack->mss ? ack->mss : 1;
}

/* How the window grows on this ACK. */
enum growth {
	GROWTH_BASE = 0,    /* as the base does; in slow start by one segment for each acknowledged */
	GROWTH_LIMITED = 1, /* as the base does, but at most by `growth_limit` segments; 0 holds the window */
};

#define VERDICT_FIELDS(X)                                                                                              \
	X(pacing_rate, verdict_pacing_rate_bytes_per_s, u64, "bytes/s", ZERO, AFTER,                                   \
	  "at which data leave until the next verdict; 0: as the host has it")                                         \
	X(outcome, _, u32, "", PLAIN, AFTER, "enum outcome, or one of the algorithm's own")                            \
	X(growth, verdict_growth, u32, "", PLAIN, AFTER,                                                               \
	  "0: as the base, 1: by `verdict_growth_limit_segments` at most")                                             \
	X(growth_limit, verdict_growth_limit_segments, u32, "segments", ZERO, AFTER, "largest growth")                 \
	X(cwnd, verdict_cwnd_segments, u32, "segments", ZERO, AFTER, "new window; 0: as it is")                        \
	X(ssthresh, verdict_ssthresh_segments, u32, "segments", ZERO, AFTER,                                           \
	  "new threshold, at or below the window the exit; 0: as it is")                                               \
	X(undo_limit, verdict_undo_limit_segments, u32, "segments", ZERO, AFTER,                                       \
	  "that an undo restores at most; 0: no limit")

/*
 * What the algorithm wants. All zero means: go on doubling, unpaced. Windows are in segments; 0 leaves a value as it
 * is. The caller bounds what it applies: a window is never set below MIN_WINDOW nor above what the socket allows.
 * Outside slow start (TRAIT_ALWAYS) only growth, window and pacing count.
 */
struct verdict {
	VERDICT_FIELDS(RECORD_FIELD)
};

/* No verdict takes the window below this, in segments (RFC 5681 section 3.1: the loss window is 1, ssthresh >= 2). */
#define MIN_WINDOW 2

/* The window that a computed target never falls below, in segments: the initial window of RFC 6928. */
#define INITIAL_WINDOW 10

/* A slow start threshold at or above this is none, the kernel's "infinite" (TCP_INFINITE_SSTHRESH). */
#define NO_THRESHOLD 0x7fffffffU

/*
 * Why slow start went on, or not. Closed: every path of every algorithm ends in one of these or in one of the
 * algorithm's own, numbered from OUTCOME_OWN; all have a counter per flow.
 */
#define COMMON_OUTCOMES(X)                                                                                             \
	X(OUTCOME_GROW, grow, "nothing to decide, slow start goes on")                                                 \
	X(OUTCOME_EXIT, exit, "slow start ends")                                                                       \
	X(OUTCOME_NO_RTT_SAMPLE, no_rtt_sample, "the ACK carries no usable RTT sample")                                \
	X(OUTCOME_APP_LIMITED, app_limited, "the sender is limited by the application")                                \
	X(OUTCOME_WARMING_UP, warming_up, "too little history to evaluate")                                            \
	X(OUTCOME_BELOW_THRESHOLD, below_threshold, "evaluated, and the link still takes more")

enum outcome {
#define OUTCOME_CONSTANT(constant, name, help) constant,
	COMMON_OUTCOMES(OUTCOME_CONSTANT)
#undef OUTCOME_CONSTANT
		OUTCOME_OWN,
};

/* Counters a flow keeps: the common outcomes and at most ten of the algorithm's own. */
#define OUTCOME_MAX 16

/*
 * One row per parameter: X(name, unit, default, minimum, maximum, choices, help). Every parameter is one u64. `choices`
 * is "" for a number, else the names of the values from 0 on, separated by '|'. Used to make the struct, its defaults
 * and the table that the loader validates against, so a parameter is declared in exactly one place.
 */
#define PARAMETER_FIELD(name, unit, def, min, max, choices, help) u64 name;
#define PARAMETER_DEFAULT(name, unit, def, min, max, choices, help) .name = (def),

/* For an algorithm that leaves the reaction to loss to the base. */
#define LOSS_LEFT_TO_BASE(algorithm)                                                                                   \
	static __always_inline u32 algorithm##_on_loss(struct algorithm *state,                                        \
						       const struct algorithm##_params *params, const struct ack *ack, \
						       u32 base_ssthresh)                                              \
	{                                                                                                              \
		(void)state;                                                                                           \
		(void)params;                                                                                          \
		(void)ack;                                                                                             \
		return base_ssthresh;                                                                                  \
	}

/* Growth by a segment for `divisor` acknowledged of `counted`; the remainder counts towards the next. */
static __always_inline void grow_slower(struct verdict *verdict, u32 *remainder, u64 counted, u64 divisor)
{
	counted += *remainder;
	verdict->growth = GROWTH_LIMITED;
	verdict->growth_limit = (u32)(counted / max_u64(divisor, 1));
	*remainder = (u32)(counted % max_u64(divisor, 1));
}

/* One row per exported field: X(algorithm, field of its state, unit, number of elements, help). */

/*
 * NAME_TRACK: no row, or X(title, unit, value, title of the limit, limit). Value and limit are expressions over `state`,
 * `params` and `ack`, computed on the host alone; TRACK_NONE: there is none. Unit: percent, us or segments.
 */
#define TRACK_NONE 0xffffffffU
#define TRACK_UNLESS_0(value) ((value) ? (value) : TRACK_NONE)
/* The window, and the one at which slow start ends; 0: none yet. */
#define TRACK_WINDOW(X, limit_title, limit)                                                                            \
	X("window", "segments", (limit) ? ack->cwnd : TRACK_NONE, limit_title, TRACK_UNLESS_0(limit))

/*
 * NAME_PICTURE: any of these, each once; expressions over `state`, computed on the host alone.
 *
 *   GAUGE(title, highest)      the track's value against its limit, percent, and the highest value below the limit so far
 *   BARS(title, unit, count)   writes at most PICTURE_BARS_MAX to `bars`, from the oldest or the first on; unit: bytes, bit/s
 *   PHASE(title, names, at)    one of the names, which '|' separates, counted from 0
 */
#define PICTURE_BARS_MAX 16

/* Bits of NAME_TRAITS. */
#define TRAIT_LIMITS_GROWTH 1	  /* answers GROWTH_LIMITED: the shell looks at its limit when the window grows */
#define TRAIT_PACES 2		  /* answers a pacing rate: the shell applies it whenever data is sent */
#define TRAIT_ALWAYS 4		  /* is asked outside slow start, too, except while a loss is being recovered */
#define TRAIT_EXTRA 8		  /* has a second part of state */
#define TRAIT_BASELINE 16	  /* looks at no signal of the path: others are compared with it */
#define TRAIT_SLEEPS 32		  /* says until when it need not be asked */
#define TRAIT_SLEEPS_BY_WINDOW 64 /* with it: until which window, in bytes, and not until which time */
#define TRAIT_DOZES 128		  /* passes over ACKs of large windows */

#endif
