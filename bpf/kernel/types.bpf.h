/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The kernel types that onramp touches, reduced to the fields it touches. libbpf relocates every access against the
 * running kernel (CO-RE), so order and size mean nothing here; names and types do. Written from the kernel's BTF
 * (6.1 to 7.2); a test compares each declared field with the BTF of the running kernel.
 */
#ifndef ONRAMP_TYPES_BPF_H
#define ONRAMP_TYPES_BPF_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;
typedef _Bool bool;

#define NULL ((void *)0)
#define true 1
#define false 0

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0 };

/* include/net/tcp.h */
enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
};

/* include/linux/tcp.h */
enum tcp_chrono {
	TCP_CHRONO_BUSY = 1, /* data to send or unacknowledged, and nothing of the below */
	TCP_CHRONO_RWND_LIMITED,
	TCP_CHRONO_SNDBUF_LIMITED,
};

/* include/net/sock.h */
enum sk_pacing {
	SK_PACING_NONE,
	SK_PACING_NEEDED, /* by TCP itself */
	SK_PACING_FQ,	  /* by the queueing discipline */
};

#define TCP_CONG_NON_RESTRICTED 1
#define TCP_CA_NAME_MAX 16
#define IPPROTO_TCP 6
#define TCP_CONGESTION 13
#define AF_INET 2
#define AF_INET6 10

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct netns_ipv4 {
	u8 sysctl_tcp_min_tso_segs;
};

struct ns_common {
	u32 inum;
};

struct net {
	struct ns_common ns;
	u64 net_cookie;
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

typedef struct {
	s64 counter;
} atomic64_t;

struct sock_common {
	u16 skc_family;
	u16 skc_num;	  /* local port, in the host's order */
	__be16 skc_dport; /* remote port */
	__be32 skc_daddr; /* remote address */
	__be32 skc_rcv_saddr;
	u32 skc_hash;		      /* keyed, of addresses and ports; set once a connection is asked for */
	struct in6_addr skc_v6_daddr; /* not in a kernel without IPv6 */
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie; /* 0 until it is requested */
	possible_net_t skc_net;
};

struct sock {
	struct sock_common __sk_common;
	u32 sk_pacing_status;		  /* enum sk_pacing */
	u32 sk_gso_max_size;		  /* bytes */
	unsigned long sk_pacing_rate;	  /* bytes per second; all ones: unlimited */
	unsigned long sk_max_pacing_rate; /* SO_MAX_PACING_RATE; all ones: unlimited */
};

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
	u8 icsk_ca_initialized : 1; /* init has been called */
	u64 icsk_ca_priv[13];
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_options_received {
	u32 rcv_tsval; /* of the newest segment that had timestamps; 0: none did */
};

struct tcp_sock {
	u64 tcp_mstamp;	     /* us */
	u64 tcp_clock_cache; /* ns, as is the next */
	u64 tcp_wstamp_ns;   /* when the newest packet leaves, or left, by the sender's spacing */
	u64 bytes_acked;
	u64 bytes_sent;
	u64 bytes_retrans;
	u32 snd_una;
	u32 snd_nxt;
	u32 write_seq;	    /* behind the newest byte that the application has given */
	u32 snd_wnd;	    /* bytes that the receiver offers */
	u32 snd_cwnd;	    /* segments */
	u32 snd_ssthresh;   /* segments */
	u32 snd_cwnd_clamp; /* segments */
	u32 mss_cache;	    /* bytes */
	u32 srtt_us;	    /* eight times the smoothed RTT */
	struct minmax rtt_min;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 delivered;
	u32 lost;	      /* segments, each as often as it was */
	u32 rate_delivered;   /* segments, of the newest rate sample */
	u32 rate_interval_us; /* in which they were delivered; 0: no sample yet */
	u32 prior_cwnd;	      /* segments, when the last loss or mark was answered */
	s32 undo_retrans;     /* segments sent again since then, less those that the receiver says it had */
	u32 app_limited;
	u32 chrono_stat[3]; /* jiffies with data to send: free to, held back by the receiver, by the send buffer */
	u32 chrono_start;   /* jiffies, since when chrono_type */
	struct tcp_options_received rx_opt;
	u8 ecn_flags;
	u8 chrono_type : 2; /* 0: nothing to send, else the index in chrono_stat plus 1 */
	u8 is_cwnd_limited : 1;
	u8 frto : 1; /* after a timeout: it may still prove spurious */
	u8 rate_app_limited : 1;
};

/* net/ipv4/tcp_cubic.c; only where CUBIC is the base */
struct bictcp {
	u32 last_max_cwnd; /* W_max, segments; 0: none yet */
	u32 delay_min;	   /* the least RTT, us, at least 1; 0: none yet */
	u8 found;	   /* HyStart: not 0 when it has exited slow start */
};

/* net/ipv4/tcp_bbr.c, version 1; only where BBR is the base */
struct bbr {
	struct minmax bw;	/* the most in ten rounds, packets per us, times 2^24 */
	u32 next_rtt_delivered; /* tcp_sock.delivered at which the round that began last ends */
	u32 mode : 3;
	u32 round_start : 1;   /* this ACK ended a round */
	u32 prev_ca_state : 3; /* icsk_ca_state at the ACK before */
	u32 full_bw_reached : 1;
	u32 full_bw_cnt : 2; /* rounds without much more bandwidth than full_bw */
	u32 prior_cwnd;	     /* segments, before loss recovery or PROBE_RTT */
	u32 full_bw;	     /* packets per us, times 2^24 */
};

/* include/net/tcp.h; cong_control reads only these */
struct rate_sample {
	u32 acked_sacked;    /* segments that this ACK says are delivered */
	bool is_app_limited; /* the application, not the path, set the rate */
};

/* include/net/tcp.h; pkts_acked reads only these */
struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

#pragma clang attribute pop

/* The operations that the shells implement; not every kernel has all of them (compat.bpf.h). */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*cong_control)(struct sock *sk, const struct rate_sample *sample);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*cwnd_event_tx_start)(struct sock *sk);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[TCP_CA_NAME_MAX];
	u32 flags;
};

static inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

#endif
