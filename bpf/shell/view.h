/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * All that the shell sees of a socket, and all that it writes there. Two implementations: kernel/view.bpf.h over the
 * kernel's struct sock, host/view.h over a plain structure. Windows and counts are in segments, times in microseconds.
 */
#ifndef ONRAMP_SHELL_VIEW_H
#define ONRAMP_SHELL_VIEW_H

#include "../record.h"

struct sock;

/* Monotonic time of the segment or timer that is being handled. */
static __always_inline u64 view_now_us(const struct sock *sk);
/* Bytes acknowledged in order; bytes sent, each counted once, and with retransmissions; bytes sent and not acknowledged. */
static __always_inline u64 view_bytes_acked(const struct sock *sk);
static __always_inline u64 view_bytes_sent(const struct sock *sk);
static __always_inline u64 view_bytes_transmitted(const struct sock *sk);
static __always_inline u32 view_bytes_outstanding(const struct sock *sk);
/* Bytes that the application has given and that have not been sent. */
static __always_inline u32 view_bytes_unsent(const struct sock *sk);
/* Segments delivered, selective ACKs included; segments in flight (tcp_packets_in_flight). */
static __always_inline u32 view_delivered(const struct sock *sk);
static __always_inline u32 view_in_flight(const struct sock *sk);
/* Segments that were believed lost, each as often as it was; wraps. */
static __always_inline u32 view_lost(const struct sock *sk);
/* Segments that are believed lost and have not arrived since. */
static __always_inline u32 view_lost_out(const struct sock *sk);
/* Whether the receiver has nothing out of order, as far as it has said (SACK). */
static __always_inline bool view_in_order(const struct sock *sk);
/* The newest sample of the delivery rate: segments, and the time in which they were delivered; 0: none yet. */
static __always_inline u32 view_rate_delivered(const struct sock *sk);
static __always_inline u32 view_rate_interval_us(const struct sock *sk);
/* Eight times the smoothed RTT, and the minimum RTT; 0: none yet. */
static __always_inline u32 view_srtt_eighths_us(const struct sock *sk);
static __always_inline u32 view_min_rtt_us(const struct sock *sk);
static __always_inline u32 view_cwnd(const struct sock *sk);
/* The maximum of the window. */
static __always_inline u32 view_cwnd_clamp(const struct sock *sk);
/* The window before the last reduction. */
static __always_inline u32 view_prior_cwnd(const struct sock *sk);
static __always_inline u32 view_ssthresh(const struct sock *sk);
/* Bytes of a full segment; 0: not known. */
static __always_inline u32 view_mss(const struct sock *sk);
/* Bytes per second: in force, and the application's maximum. */
static __always_inline u64 view_pacing_rate(const struct sock *sk);
static __always_inline u64 view_max_pacing_rate(const struct sock *sk);
/* Whether TCP or the queueing discipline paces. */
static __always_inline bool view_paced(const struct sock *sk);
/* Whether packets that pacing has sent still have to leave, by the times that they are stamped with. */
static __always_inline bool view_stamped_ahead(const struct sock *sk);
/* Bytes of the largest burst handed to the device. */
static __always_inline u32 view_gso_max_size(const struct sock *sk);
/* What struct ack.flags says but for ACK_PACED. */
static __always_inline u32 view_limited_by(const struct sock *sk);
/* The receiver's timestamp (RFC 7323) in its newest segment; 0: none. */
static __always_inline u32 view_receiver_clock(const struct sock *sk);
/* Bytes that the receiver offers. */
static __always_inline u32 view_receive_window(const struct sock *sk);
/* enum congestion_state. */
static __always_inline u32 view_state(const struct sock *sk);
/* Whether a timeout may still prove spurious (F-RTO, RFC 5682), in STATE_LOSS. */
static __always_inline bool view_in_doubt(const struct sock *sk);
/* Whether ECN was negotiated. */
static __always_inline bool view_ecn(const struct sock *sk);

static __always_inline void set_cwnd(struct sock *sk, u32 segments);
static __always_inline void set_ssthresh(struct sock *sk, u32 segments);
static __always_inline void set_pacing_rate(struct sock *sk, u64 bytes_per_s);
/* Has TCP pace where nothing paces; whether it does now because of this call. */
static __always_inline bool start_pacing(struct sock *sk);
/* Undoes it, unless the queueing discipline paces by now. */
static __always_inline void stop_pacing(struct sock *sk);

#endif
