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

/* Of a flow, once there is something to note. */
struct mark {
	u32 left_out; /* 1: it does not count, in either arm: it was not there from its beginning */
	u32 first_jiffies; /* in which it had data to send until GUARD_FIRST_BYTES were acknowledged, at least 1; 0: not yet */
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
	struct mark *mark = bpf_sk_storage_get(&marks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (mark)
		mark->left_out = 1;
}

/* Jiffies in which the flow had data to send, as tcp_info has them. */
static __always_inline u32 busy_jiffies(const struct tcp_sock *tp)
{
	u32 busy = tp->chrono_stat[0] + tp->chrono_stat[1] + tp->chrono_stat[2];

	if (BPF_CORE_READ_BITFIELD(tp, chrono_type))
		busy += (u32)bpf_jiffies64() - tp->chrono_start;
	return busy;
}

/* The first bytes have been acknowledged, by this ACK or one before. */
static __noinline void guard_marks(struct sock *sk)
{
	struct mark *mark = bpf_sk_storage_get(&marks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (mark && !mark->first_jiffies)
		mark->first_jiffies = (u32)max_u64(busy_jiffies(tcp_sk(sk)), 1);
}

/*
 * An ACK of so many segments: of all ACKs of a flow, in slow start or not, with state or without, those after which no more
 * than they may have acknowledged is beyond the first bytes are looked at. A flow of a guarded attachment does not sleep.
 */
static __always_inline void guard_acked(struct sock *sk, u32 segments)
{
	u64 acked = view_bytes_acked(sk);

	if (acked >= GUARD_FIRST_BYTES && acked - GUARD_FIRST_BYTES <= ((u64)segments + 1) * view_mss(sk))
		guard_marks(sk);
}

/* A flow ends. `over`: nothing is counted any more. True: tripped. */
static __always_inline bool guard_end(struct sock *sk, bool over)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct mark *mark = bpf_sk_storage_get(&marks, sk, 0, 0);
	u32 observed[GUARD_METRIC_MAX] = { GUARD_UNSEEN, GUARD_UNSEEN, GUARD_UNSEEN };
	struct guard *here = guard_here();
	u32 arm = guard_arm(sk);
	bool tripped, left_out = false;
	u64 now;

	if (mark) {
		left_out = mark->left_out;
		observed[GUARD_FIRST] = guard_first(mark->first_jiffies);
		bpf_sk_storage_delete(&marks, sk);
	}
	if (!here || over || left_out || tp->bytes_acked < GUARD_FIRST_BYTES)
		return false;
	if (tp->bytes_acked >= GUARD_BYTES_MIN) {
		observed[GUARD_RETRANSMITS] = guard_retransmits(tp->bytes_retrans, tp->bytes_sent);
		observed[GUARD_GOODPUT] = guard_goodput(tp->bytes_acked, busy_jiffies(tp));
	}
	now = bpf_ktime_get_boot_ns();
	bpf_spin_lock(&here->lock);
	tripped = guard_record(here, arm, observed, now);
	bpf_spin_unlock(&here->lock);
	return tripped;
}

#endif
