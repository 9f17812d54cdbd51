/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What shadow.bpf.c reports to its loader of flows that another congestion control drives. Both are of one process
 * and one build, which makes Rust of it.
 */
#ifndef ONRAMP_SHADOW_H
#define ONRAMP_SHADOW_H

enum snapshot_kind {
	SNAPSHOT_ACK = 1,   /* a segment has arrived and is not processed yet */
	SNAPSHOT_STATE = 2, /* the congestion state is about to become `new_state` */
	SNAPSHOT_SHUT = 3,  /* the connection is closing: no more SNAPSHOT_ACK */
	SNAPSHOT_END = 4,   /* it is closed */
};

/* A socket as it is at one moment. */
struct socket_snapshot {
	u64 time_ns; /* monotonic */
	u64 flow;    /* number of the flow, from 1 */
	u64 bytes_acked;
	u64 bytes_sent; /* with retransmissions */
	u64 bytes_retransmitted;
	u64 pacing_rate; /* bytes per second */
	u32 kind;	 /* enum snapshot_kind */
	u32 sequence;	 /* of the flow, from 1, without a gap unless some were lost */
	u32 established; /* 1: the connection was established before it was seen first */
	u32 state;	 /* enum tcp_ca_state */
	u32 new_state;	 /* of SNAPSHOT_STATE */
	u32 snd_una;
	u32 snd_nxt;
	u32 rcv_nxt;
	u32 cwnd; /* segments, as is the next */
	u32 ssthresh;
	u32 mss;	 /* bytes */
	u32 srtt;	 /* eighths of a microsecond, as the kernel has it */
	u32 min_rtt_us;	 /* all ones: none */
	u32 rack_rtt_us; /* sample of the segment sent last of those delivered; 0: none */
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 delivered;
	u32 gso_max_size;   /* bytes */
	u32 flags;	    /* enum ack_flag */
	u32 ecn;	    /* 1: the connection uses ECN */
	u32 receiver_clock; /* of the newest segment with timestamps, in the peer's ticks; 0: none */
	u32 receive_window; /* bytes from snd_una that the receiver offers; 0: none */
	u32 netns;	    /* inode of the network namespace */
	u32 local[4];	    /* network order, IPv4 mapped into IPv6 */
	u32 remote[4];	    /* likewise */
	u16 local_port;
	u16 remote_port;
	u8 control[16]; /* name of the congestion control, NUL padded */
};
_Static_assert(sizeof(struct socket_snapshot) == 200, "no implicit padding");

/* What came of all flows. */
struct snapshot_counts {
	u64 flows;	 /* followed */
	u64 lost;	 /* snapshots for which the ring had no room */
	u64 established; /* flows passed over, because they were in progress */
	u64 unfollowed;	 /* flows for which there was no memory */
};
_Static_assert(sizeof(struct snapshot_counts) == 32, "no implicit padding");

#endif
