/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The guard's part in the life of a flow: its arm, by its hash, and what it came to, counted when it ends. Flows count in
 * the arm that they were given, whether or not they ever needed the algorithm (intention to treat): what lets flows in
 * is the same in both. guard.h has the arithmetic. An attachment without a guard has none of this in its code.
 */
#ifndef ONRAMP_GUARD_BPF_H
#define ONRAMP_GUARD_BPF_H

#include "../guard.h"

/* 1: some flows are the control, and both arms are counted. Set by the loader, in a section of its own. */
const volatile u32 guarding SEC(".rodata.guarding") = 0;

/* One element. Counts are looked at together, so they are written together: under its lock. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct guard);
} guard SEC(".maps");

/* Of flows that do not count, in both arms alike: those that were not there from their beginning. */
struct mark {
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct mark);
} marks SEC(".maps");

static __always_inline struct guard *guard_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&guard, &zero);
}

/* The arm of a flow. */
static __always_inline u32 guard_arm(const struct sock *sk)
{
	const struct guard *here = guard_here();

	return here ? guard_arm_of(here, sk->__sk_common.skc_hash) : ARM_TREATED;
}

/* The flow was taken over in mid-connection. */
static __always_inline void guard_leave_out(struct sock *sk)
{
	bpf_sk_storage_get(&marks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
}

/* Jiffies in which the flow had data to send, as tcp_info has them. */
static __always_inline u32 busy_jiffies(const struct tcp_sock *tp)
{
	u32 busy = tp->chrono_stat[0] + tp->chrono_stat[1] + tp->chrono_stat[2];

	if (BPF_CORE_READ_BITFIELD(tp, chrono_type))
		busy += (u32)bpf_jiffies64() - tp->chrono_start;
	return busy;
}

/* A flow ends. `over`: nothing is counted any more. True: tripped. */
static __always_inline bool guard_end(struct sock *sk, bool over)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct guard *here = guard_here();
	u32 observed[GUARD_METRIC_MAX];
	u32 arm = guard_arm(sk);
	bool tripped;
	u64 now;

	if (bpf_sk_storage_get(&marks, sk, 0, 0)) {
		bpf_sk_storage_delete(&marks, sk);
		return false;
	}
	if (!here || over || tp->bytes_acked < GUARD_BYTES_MIN)
		return false;
	observed[GUARD_RETRANSMITS] = guard_retransmits(tp->bytes_retrans, tp->bytes_sent);
	observed[GUARD_GOODPUT] = guard_goodput(tp->bytes_acked, busy_jiffies(tp));
	now = bpf_ktime_get_boot_ns();
	bpf_spin_lock(&here->lock);
	tripped = guard_record(here, arm, observed, now);
	bpf_spin_unlock(&here->lock);
	return tripped;
}

#endif
