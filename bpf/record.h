/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What leaves a flow: one row per field of each record, and one per name of each enumeration. C structures are made of the
 * rows here. The build (records/) makes of them Rust's structures, enumerations and rows, from which come recordings'
 * columns with their metadata, JSON, and the tables of docs/recording.md; and schemas of the API of `onramp serve`, from
 * which its page has types. The ACK and the verdict have their rows in algorithm/algorithm.h.
 *
 * A field: X(name, column, type, unit, values, side, help). `column` is its name outside, with the unit in it; `_`: it
 * has none. `values` is what they say:
 *
 *	PLAIN		a number
 *	ZERO		0 stands for none
 *	NEGATIVE	what is below 0 stands for none
 *	THRESHOLD	NO_THRESHOLD and above stand for none
 *	FLAG		0: no, 1: yes
 *	BITS		the bits of enum ack_flag
 *	else		the enumeration whose number it is; its name goes out
 *
 * `side`: BEFORE or AFTER what the record is about was done; DURING: over its time.
 */
#ifndef ONRAMP_RECORD_H
#define ONRAMP_RECORD_H

#include "algorithm/algorithm.h"

/* Raised when a structure here, in abi.h or in events.h changes. */
#define ABI_VERSION 1

/* A row of an enumeration: X(constant, name outside, help). Numbers are given in this order. */
#define RECORD_CONSTANT(constant, name, help) constant,

/* Why the first slow start of a flow ended; EXIT_NONE: it has not. */
#define EXIT_REASON_ROWS(X)                                                                                            \
	X(EXIT_ALGORITHM, algorithm, "the algorithm's verdict; of a stock control its own (HyStart, BBR)")             \
	X(EXIT_LOSS, loss, "fast recovery")                                                                            \
	X(EXIT_ECN, ecn, "an ECN mark")                                                                                \
	X(EXIT_TIMEOUT, timeout, "retransmission timeout")                                                             \
	X(EXIT_LOCAL, local_congestion, "a queue of this host refused a packet")                                       \
	X(EXIT_SSTHRESH, ssthresh, "an ssthresh that another control or an earlier slow start has set")                \
	X(EXIT_CACHED_SSTHRESH, cached_ssthresh,                                                                       \
	  "an ssthresh that the connection had from its begin: cached metrics of its peer, or its route's")

enum exit_reason { EXIT_NONE, EXIT_REASON_ROWS(RECORD_CONSTANT) };

/* The kernel's congestion state of a connection, by the numbers of enum tcp_ca_state. */
#define CONGESTION_STATE_ROWS(X)                                                                                       \
	X(STATE_OPEN, open, "nothing unusual")                                                                         \
	X(STATE_DISORDER, disorder, "duplicate or selective ACKs")                                                     \
	X(STATE_CWR, cwr, "the window is being reduced for ECN or local congestion")                                   \
	X(STATE_RECOVERY, recovery, "fast recovery")                                                                   \
	X(STATE_LOSS, loss, "after a retransmission timeout")

enum congestion_state { CONGESTION_STATE_ROWS(RECORD_CONSTANT) };

#define EVENT_KIND_ROWS(X)                                                                                             \
	X(EVENT_FLOW, flow, "the flow began, is reported to a new consumer, or its parameters have changed")           \
	X(EVENT_END, end, "the flow ended, or went to another control")                                                \
	X(EVENT_EXIT, exit, "the first slow start is over and its record complete")                                    \
	X(EVENT_UNDO, undo, "a loss proved spurious")                                                                  \
	X(EVENT_ROUND, round, "a round is over")                                                                       \
	X(EVENT_LOSS, loss, "the window is to be reduced: loss, ECN or timeout")                                       \
	X(EVENT_STATE, state, "the congestion state changes")                                                          \
	X(EVENT_RESTART, restart, "slow start begins, for the first time or anew")                                     \
	X(EVENT_ACK, ack, "an acknowledgment")

enum event_kind { EVENT_NONE, EVENT_KIND_ROWS(RECORD_CONSTANT) };

/* Options of the base of an attachment for what comes after slow start (shell/after.h). A set of them has a bit for each. */
#define AFTER_EXIT_ROWS(X)                                                                                             \
	X(AFTER_PLATEAU, plateau,                                                                                      \
	  "over cubic: the window of an exit by the algorithm becomes CUBIC's W_max, so growth levels off there")      \
	X(AFTER_FLOOR, floor,                                                                                          \
	  "over cubic or reno: where no full queue is met, a loss leaves at least 95 percent of delivery rate x "      \
	  "minimum RTT")                                                                                               \
	X(AFTER_PROBE, probe,                                                                                          \
	  "over cubic or reno: after eight rounds, if none of the last two shows a queue, the window grows by a "      \
	  "quarter")

enum after_exit { AFTER_EXIT_ROWS(RECORD_CONSTANT) };

/* What an attachment's connections do at their start (start/). A bit for each. */
#define START_POLICY_ROWS(X)                                                                                           \
	X(POLICY_RESUME, resume,                                                                                       \
	  "over a path that is remembered, once its first window is acknowledged, a connection goes to half of what "  \
	  "the path held (RFC 9959)")                                                                                  \
	X(POLICY_WINDOW, window,                                                                                       \
	  "over a path that is remembered, the first window is half of what the path held, at most 64 kB, paced")      \
	X(POLICY_FAST, fast,                                                                                           \
	  "over any other path, the window triples per RTT while no queue shows (draft-kazuho-ccwg-rapid-start-02)")   \
	X(POLICY_SUSS, suss,                                                                                           \
	  "as fast, but in rounds 2 to 4 it quadruples while the next is predicted to double (SUSS, SIGCOMM 2024); "   \
	  "only to compare with")

enum start_policy { START_POLICY_ROWS(RECORD_CONSTANT) };

/* How far a start from memory has come (RFC 9959, section 3); after the last phase a connection is like any other. */
#define START_PHASE_ROWS(X)                                                                                            \
	X(START_RECONNAISSANCE, reconnaissance, "the first window is on its way")                                      \
	X(START_UNVALIDATED, unvalidated, "the window goes to what is remembered")                                     \
	X(START_VALIDATING, validating, "what that has sent is being acknowledged")                                    \
	X(START_OVER, over, "as without memory")

enum start_phase { START_UNKNOWN, START_PHASE_ROWS(RECORD_CONSTANT) };

/* Why a start from memory is over. */
#define START_END_ROWS(X)                                                                                              \
	X(START_VALIDATED, validated, "all that the jump sent is acknowledged")                                        \
	X(START_RETREAT, retreat, "a loss, mark or timeout in what the jump sent")                                     \
	X(START_CONGESTION, congestion, "a loss, mark or timeout before the jump")                                     \
	X(START_RTT, rtt, "the RTT is less than half or more than twice the remembered one")                           \
	X(START_NO_GAIN, no_gain, "doubling comes as far as soon, or the RTT is below 2 ms")                           \
	X(START_EXIT, exit, "slow start has ended")                                                                    \
	X(START_REFUSED, refused, "over BBR, after a repeated handshake, with a threshold, or with another RTT")       \
	X(START_LATE, late, "the application had so little to send for so long that the claim is void or another's")

enum start_end { START_NONE, START_END_ROWS(RECORD_CONSTANT) };

/* How the first slow start ended. */
#define EXIT_FIELDS(X)                                                                                                 \
	X(at_us, since_start_us, u64, "us", PLAIN, BEFORE, "since the first data was sent")                            \
	X(bytes_acked, acknowledged_bytes, u64, "bytes", PLAIN, BEFORE, "at detection")                                \
	X(window, cwnd_segments, u32, "segments", PLAIN, BEFORE, "at detection")                                       \
	X(window_after, cwnd_after_segments, u32, "segments", ZERO, AFTER,                                             \
	  "when slow start was over; 0: a drain is in progress")                                                       \
	X(in_flight, in_flight_segments, u32, "segments", PLAIN, BEFORE, "at detection")                               \
	X(rtt_us, rtt_us, u32, "us", PLAIN, BEFORE, "sample at detection, else the smoothed RTT")                      \
	X(min_rtt_us, min_rtt_us, u32, "us", PLAIN, BEFORE, "at detection")                                            \
	X(mss, mss_bytes, u16, "bytes", PLAIN, BEFORE, "maximum segment size")                                         \
	X(reason, reason, u8, "", exit_reason, BEFORE,                                                                 \
	  "why: `algorithm`, `loss`, `ecn`, `timeout`, `local_congestion`, `ssthresh` or `cached_ssthresh`; empty if " \
	  "undone, and all other columns 0")                                                                           \
	X(undone, undone, u8, "", PLAIN, BEFORE, "exits before this one that proved spurious; 255: or more")

struct exit_record {
	EXIT_FIELDS(RECORD_FIELD)
};
_Static_assert(sizeof(struct exit_record) == 40, "exit_record is part of the ABI");

/* A round that is over. */
#define ROUND_FIELDS(X)                                                                                                \
	X(duration_us, duration_us, u64, "us", PLAIN, DURING, "how long it was")                                       \
	X(bytes, acknowledged_bytes, u64, "bytes", PLAIN, DURING, "acknowledged in it")                                \
	X(pacing_rate, pacing_rate_bytes_per_s, u64, "bytes/s", ZERO, AFTER, "pacing rate at its end; 0: none yet")    \
	X(number, round, u32, "", PLAIN, DURING, "number of the round, from 0")                                        \
	X(delivered, delivered_segments, u32, "segments", PLAIN, DURING,                                               \
	  "delivered in it, selective acknowledgments included")                                                       \
	X(acks, acks, u32, "", PLAIN, DURING, "ACKs")                                                                  \
	X(cwnd_limited_us, cwnd_limited_us, u32, "us", PLAIN, DURING,                                                  \
	  "time within the round in which cwnd was the limit")                                                         \
	X(min_rtt_us, min_rtt_us, u32, "us", ZERO, DURING, "of its samples; 0: none")                                  \
	X(smoothed_rtt_us, smoothed_rtt_us, u32, "us", ZERO, AFTER, "at its end")                                      \
	X(cwnd, cwnd_segments, u32, "segments", PLAIN, AFTER, "congestion window at its end, as all that follows")     \
	X(ssthresh, ssthresh_segments, u32, "segments", THRESHOLD, AFTER, "slow start threshold")                      \
	X(in_flight, in_flight_segments, u32, "segments", PLAIN, AFTER, "in flight")                                   \
	X(mss, mss_bytes, u32, "bytes", PLAIN, AFTER, "maximum segment size")                                          \
	X(receive_window, receive_window_bytes, u32, "bytes", ZERO, AFTER,                                             \
	  "offered by the receiver, from what is acknowledged; 0: none, or not known")                                 \
	X(flags, _, u16, "", PLAIN, AFTER, "enum flow_flag")                                                           \
	X(start_phase, start_phase, u8, "", start_phase, BEFORE,                                                       \
	  "how far a start from memory had come before the ACK; empty: none")                                          \
	X(start_end, start_end, u8, "", start_end, BEFORE, "how a start from memory ended; empty: none")

struct round_payload {
	ROUND_FIELDS(RECORD_FIELD)
};
_Static_assert(sizeof(struct round_payload) == 72, "round_payload is part of the ABI");

/* The end of a flow. */
#define END_FIELDS(X)                                                                                                  \
	X(bytes_acked, acknowledged_bytes, u64, "bytes", PLAIN, AFTER, "acknowledged, at the end")                     \
	X(bytes_sent, sent_bytes, u64, "bytes", PLAIN, AFTER, "sent, retransmissions not counted again, at the end")   \
	X(bytes_retransmitted, retransmitted_bytes, u64, "bytes", PLAIN, AFTER, "retransmitted, at the end")           \
	X(busy_us, busy_us, u64, "us", PLAIN, DURING,                                                                  \
	  "time with data to send or unacknowledged, in jiffies; the two limited times are parts of it")               \
	X(receive_window_limited_us, receive_window_limited_us, u64, "us", PLAIN, DURING,                              \
	  "of the busy time, that limited by the receive window")                                                      \
	X(send_buffer_limited_us, send_buffer_limited_us, u64, "us", PLAIN, DURING,                                    \
	  "of the busy time, that limited by the send buffer")                                                         \
	X(idle_us, idle_us, u64, "us", PLAIN, DURING,                                                                  \
	  "of the time since the first data was sent, that with nothing to send; 0 also if unknown")                   \
	X(smoothed_rtt_us, smoothed_rtt_us, u32, "us", ZERO, AFTER, "at the end; 0: none")                             \
	X(min_rtt_us, min_rtt_us, u32, "us", ZERO, AFTER, "at the end; 0: none")                                       \
	X(cwnd, cwnd_segments, u32, "segments", PLAIN, AFTER, "congestion window at the end")                          \
	X(ssthresh, ssthresh_segments, u32, "segments", THRESHOLD, AFTER, "slow start threshold at the end")           \
	X(start_end, start_end, u32, "", start_end, AFTER, "how a start from memory ended; empty: none")               \
	X(jump, jump_segments, u32, "segments", ZERO, AFTER, "window that it jumped to; 0: none")

struct end_payload {
	END_FIELDS(RECORD_FIELD)
};

/* A loss proved spurious. */
#define UNDO_FIELDS(X)                                                                                                 \
	X(cwnd, cwnd_segments, u32, "segments", PLAIN, BEFORE, "congestion window before")                             \
	X(restored, restored_segments, u32, "segments", PLAIN, AFTER, "congestion window after")                       \
	X(exit_undone, exit_undone, u32, "", FLAG, AFTER, "1: the exit reported before is undone")                     \
	X(unused, _, u32, "", PLAIN, AFTER, "")

struct undo_payload {
	UNDO_FIELDS(RECORD_FIELD)
};

/* The window is to be reduced: loss, ECN or timeout. */
#define LOSS_FIELDS(X)                                                                                                 \
	X(base_ssthresh, base_ssthresh_segments, u32, "segments", ZERO, AFTER,                                         \
	  "threshold that the base would set; with `loss` only")                                                       \
	X(ssthresh, verdict_ssthresh_segments, u32, "segments", ZERO, AFTER,                                           \
	  "new threshold, at or below the window the exit; 0: as it is")                                               \
	X(called, called, u32, "", FLAG, BEFORE, "1: the algorithm was called")                                        \
	X(unused, _, u32, "", PLAIN, AFTER, "")

struct loss_payload {
	struct ack ack; /* as the algorithm saw it, if it was called */
	LOSS_FIELDS(RECORD_FIELD)
};

/* The congestion state changes. */
#define STATE_FIELDS(X)                                                                                                \
	X(bytes_retransmitted, retransmitted_bytes, u64, "bytes", PLAIN, BEFORE, "so far")                             \
	X(from, from_state, u32, "", congestion_state, BEFORE, "`open`, `disorder`, `cwr`, `recovery` or `loss`")      \
	X(to, to_state, u32, "", congestion_state, AFTER, "the same")                                                  \
	X(cwnd, cwnd_segments, u32, "segments", PLAIN, BEFORE, "congestion window")                                    \
	X(ssthresh, ssthresh_segments, u32, "segments", THRESHOLD, BEFORE, "slow start threshold")                     \
	X(in_flight, in_flight_segments, u32, "segments", PLAIN, BEFORE, "in flight")                                  \
	X(unused, _, u32, "", PLAIN, AFTER, "")

struct state_payload {
	STATE_FIELDS(RECORD_FIELD)
};

/* Slow start begins, for the first time or anew. */
#define RESTART_FIELDS(X)                                                                                              \
	X(slow_starts, slow_starts, u32, "", PLAIN, AFTER, "times slow start was entered, this one included")          \
	X(cwnd, cwnd_segments, u32, "segments", PLAIN, BEFORE, "congestion window")                                    \
	X(ssthresh, ssthresh_segments, u32, "segments", THRESHOLD, BEFORE, "slow start threshold")                     \
	X(unused, _, u32, "", PLAIN, AFTER, "")

struct restart_payload {
	RESTART_FIELDS(RECORD_FIELD)
};

/* An acknowledgment, as given to the algorithm, and its answer. */
#define ACK_PAYLOAD_FIELDS(X)                                                                                          \
	X(called, called, u32, "", FLAG, BEFORE, "1: the algorithm was called")                                        \
	X(generation, parameters_generation, u32, "", PLAIN, BEFORE,                                                   \
	  "generation of the parameters that were in force")                                                           \
	X(flags, _, u16, "", PLAIN, AFTER, "enum flow_flag")                                                           \
	X(start_phase, start_phase, u8, "", start_phase, BEFORE,                                                       \
	  "how far a start from memory had come before the ACK; empty: none")                                          \
	X(start_end, start_end, u8, "", start_end, BEFORE, "how a start from memory ended; empty: none")               \
	X(jump, jump_segments, u32, "segments", ZERO, BEFORE, "window that it jumped to; 0: none")

struct ack_payload {
	struct ack ack;
	struct verdict verdict; /* zero if the algorithm was not called */
	ACK_PAYLOAD_FIELDS(RECORD_FIELD)
};

/* Connections that a control has seen since it was attached, also where the base runs alone (deadline, guard). */
#define FLOW_COUNT_FIELDS(X)                                                                                           \
	X(started, flows_started, u64, "", PLAIN, AFTER, "connections that came to the control")                       \
	X(adopted, flows_adopted, u64, "", PLAIN, AFTER,                                                               \
	  "connections that had sent more than an initial window before they came to the control")                     \
	X(without_state, flows_without_state, u64, "", PLAIN, AFTER,                                                   \
	  "ended connections that had no state: they sent no more than an initial window, or the base ran alone")      \
	X(state_failures, state_failures, u64, "", PLAIN, AFTER,                                                       \
	  "ACKs at which there was no memory for a flow's state: the base runs alone")                                 \
	X(exits_undone, exits_undone, u64, "", PLAIN, AFTER, "exits of ended flows that proved spurious")

struct flow_counts {
	FLOW_COUNT_FIELDS(RECORD_FIELD)
};

/*
 * Tables. COLUMN(name, type, unit, values, help): what the writer of the row adds. FIELDS(structure): its fields with a
 * column; one that two structures have is one column. `at_us` is first in each.
 */
#define EVENT_COLUMNS(COLUMN)                                                                                          \
	COLUMN(at_us, u64, "us", PLAIN, "monotonic clock")                                                             \
	COLUMN(flow, u64, "", PLAIN, "number of the connection, the same in all tables")                               \
	COLUMN(sequence, u32, "", PLAIN, "number of the event among those of the connection")

#define FLOWS_TABLE(COLUMN, FIELDS)                                                                                    \
	EVENT_COLUMNS(COLUMN)                                                                                          \
	COLUMN(event, text, "", PLAIN,                                                                                 \
	       "`start`, `again` (already there when recording began, or its parameters changed) or `end`")            \
	COLUMN(local_address, text, "", PLAIN, "address at this host; empty at the end")                               \
	COLUMN(local_port, u32, "", PLAIN, "port at this host")                                                        \
	COLUMN(remote_address, text, "", PLAIN, "address of the peer; empty at the end")                               \
	COLUMN(remote_port, u32, "", PLAIN, "port of the peer")                                                        \
	COLUMN(algorithm, text, "", PLAIN, "algorithm")                                                                \
	COLUMN(parameter_set, u32, "", PLAIN, "number of the parameter set")                                           \
	COLUMN(parameters_generation, u32, "", PLAIN, "of the parameters")                                             \
	COLUMN(adopted, u32, "", FLAG, "1: it had sent data before the algorithm was attached to it")                  \
	COLUMN(started_us, u64, "us", ZERO, "when the first data was sent; 0: not yet, or not known at the end")       \
	COLUMN(slow_starts, u32, "", PLAIN, "times slow start was entered")                                            \
	COLUMN(netns, u32, "", PLAIN, "inode of the network namespace")                                                \
	COLUMN(cookie, u64, "", ZERO, "the kernel's id of the socket; 0: none yet")                                    \
	FIELDS(end_payload)                                                                                            \
	COLUMN(state, text_8192, "", PLAIN, "state of the algorithm in hexadecimal; empty at the end")

#define ACKS_TABLE(COLUMN, FIELDS)                                                                                     \
	EVENT_COLUMNS(COLUMN)                                                                                          \
	COLUMN(event, text, "", PLAIN, "`ack` or `loss` (loss, ECN or timeout in slow start)")                         \
	COLUMN(slow_starts, u32, "", PLAIN, "times slow start was entered, this ACK included")                         \
	FIELDS(ack_payload)                                                                                            \
	FIELDS(ack)                                                                                                    \
	COLUMN(verdict_outcome, text, "", EMPTY, "name of the verdict")                                                \
	FIELDS(verdict)                                                                                                \
	FIELDS(loss_payload)

#define ROUNDS_TABLE(COLUMN, FIELDS)                                                                                   \
	EVENT_COLUMNS(COLUMN)                                                                                          \
	FIELDS(round_payload)

#define EXITS_TABLE(COLUMN, FIELDS)                                                                                    \
	EVENT_COLUMNS(COLUMN)                                                                                          \
	COLUMN(event, text, "", PLAIN, "`exit`, or `undone`: the exit before is undone")                               \
	FIELDS(exit_record)

#define STATES_TABLE(COLUMN, FIELDS)                                                                                   \
	EVENT_COLUMNS(COLUMN)                                                                                          \
	FIELDS(state_payload)

/* Not in recordings: records as JSON has them. */
#define EXIT_RECORDS_TABLE(COLUMN, FIELDS)                                                                             \
	FIELDS(exit_record)                                                                                            \
	COLUMN(window_bytes, u64, "bytes", PLAIN, "congestion window at detection: segments times the MSS")
#define ENDS_TABLE(COLUMN, FIELDS)                                                                                     \
	FIELDS(end_payload) COLUMN(slow_starts, u32, "", PLAIN, "times slow start was entered")
#define UNDOS_TABLE(COLUMN, FIELDS) FIELDS(undo_payload)
#define RESTARTS_TABLE(COLUMN, FIELDS) FIELDS(restart_payload)

#define FLOW_COUNTS_TABLE(COLUMN, FIELDS) FIELDS(flow_counts)

/* All of the above, for the build. */
#define RECORD_ENUMERATIONS(X)                                                                                         \
	X(exit_reason, EXIT_REASON_ROWS, "Why the first slow start of a flow ended.")                                  \
	X(congestion_state, CONGESTION_STATE_ROWS, "The kernel's congestion state of a connection.")                   \
	X(event_kind, EVENT_KIND_ROWS, "What an event is about.")                                                      \
	X(after_exit, AFTER_EXIT_ROWS, "An option of the base for what comes after slow start.")                       \
	X(start_policy, START_POLICY_ROWS, "What a connection does at its start.")                                     \
	X(start_phase, START_PHASE_ROWS, "How far a start from memory has come.")                                      \
	X(start_end, START_END_ROWS, "Why a start from memory is over.")
#define RECORD_STRUCTURES(X)                                                                                           \
	X(ack, ACK_FIELDS)                                                                                             \
	X(verdict, VERDICT_FIELDS)                                                                                     \
	X(exit_record, EXIT_FIELDS)                                                                                    \
	X(round_payload, ROUND_FIELDS)                                                                                 \
	X(end_payload, END_FIELDS)                                                                                     \
	X(undo_payload, UNDO_FIELDS)                                                                                   \
	X(loss_payload, LOSS_FIELDS)                                                                                   \
	X(state_payload, STATE_FIELDS)                                                                                 \
	X(restart_payload, RESTART_FIELDS)                                                                             \
	X(ack_payload, ACK_PAYLOAD_FIELDS)                                                                             \
	X(flow_counts, FLOW_COUNT_FIELDS)
#define RECORD_TABLES(X)                                                                                               \
	X(flows, FLOWS_TABLE,                                                                                          \
	  "A connection: when its algorithm began, what the recorder learnt of it later, its end.")                    \
	X(acks, ACKS_TABLE, "An ACK as the algorithm saw it, and its verdict; or a loss at which it was called.")      \
	X(rounds, ROUNDS_TABLE, "A round: from one ACK to the first that acknowledges what was sent after it.")        \
	X(exits, EXITS_TABLE, "The end of a first slow start, or that it was undone: the loss was spurious.")          \
	X(states, STATES_TABLE, "A change of the kernel's congestion state.")                                          \
	X(exit_records, EXIT_RECORDS_TABLE, "How the first slow start of a flow ended.")                               \
	X(ends, ENDS_TABLE, "The end of a flow.")                                                                      \
	X(undos, UNDOS_TABLE, "A loss that proved spurious.")                                                          \
	X(restarts, RESTARTS_TABLE, "A slow start that begins.")                                                       \
	X(flow_counts, FLOW_COUNTS_TABLE, "Connections that a control has seen since it was attached.")

#endif
