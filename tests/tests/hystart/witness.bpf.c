/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Linux's CUBIC with its own HyStart at work, and next to it algorithm/hystart.h on the same ACKs, whose verdicts are
 * compared and not applied. What it sees of first slow starts is counted in `seen`.
 */
#include "kernel/base.bpf.h"
#include "shell/ack.h"
#include "algorithm/hystart.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
/* What CUBIC's HyStart keeps of a flow (net/ipv4/tcp_cubic.c). */
struct bictcp___hystart {
	u32 delay_min;
	u8 sample_cnt;
	u8 found;
	u32 round_start;
	u32 last_ack;
	u32 curr_rtt;
};
#pragma clang attribute pop

struct seen {
	u64 acks;	   /* compared */
	u64 both;	   /* exits on the same ACK */
	u64 only_ours;	   /* the header left, the kernel did not */
	u64 only_kernels;  /* the other way round */
	u64 state_differs; /* ACKs after which the two do not remember the same */
	u64 train;	   /* exits, by detector of the header */
	u64 delay;
	u64 train_windows; /* segments, summed over these exits */
	u64 delay_windows;
	u64 over;	 /* flows whose first slow start is over */
	u64 interrupted; /* of them, by loss, a mark or a timeout */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct seen);
} seen SEC(".maps");

struct watched {
	struct hystart state;
	u32 over;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct watched);
} flows SEC(".maps");

/* The header's, replaced by the test before loading. */
const volatile struct hystart_params watched_params SEC(".rodata.params") = { HYSTART_PARAMETERS(PARAMETER_DEFAULT) };

static __always_inline struct bictcp___hystart *kernels(struct sock *sk)
{
	return (struct bictcp___hystart *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline bool same_memory(const struct hystart *ours, const struct bictcp___hystart *theirs)
{
	u32 round_min = ours->round_min_us ? ours->round_min_us : ~0U;

	return ours->delay_min_us == theirs->delay_min && round_min == theirs->curr_rtt &&
	       min_u64(ours->samples, 8) == theirs->sample_cnt && (u32)ours->round_start_us == theirs->round_start &&
	       (u32)ours->last_ack_us == theirs->last_ack;
}

static __always_inline void compare(struct sock *sk, struct watched *flow, const struct ack_sample *sample,
				    struct seen *count)
{
	const struct hystart_params params = watched_params;
	struct bictcp___hystart *theirs = kernels(sk);
	struct verdict verdict = {};
	bool ours_left, kernel_left;
	struct ack ack;

	describe(sk, sample->pkts_acked, sample->rtt_us, &ack);
	hystart_on_ack(&flow->state, &params, &ack, &verdict);
	cubictcp_acked(sk, sample);
	ours_left = verdict.outcome == OUTCOME_EXIT;
	kernel_left = theirs->found;

	count->acks++;
	count->both += ours_left && kernel_left;
	count->only_ours += ours_left && !kernel_left;
	count->only_kernels += kernel_left && !ours_left;
	count->state_differs += !same_memory(&flow->state, theirs);
	if (ours_left && flow->state.detected & HYSTART_TRAIN) {
		count->train++;
		count->train_windows += ack.cwnd;
	}
	if (ours_left && flow->state.detected & HYSTART_DELAY) {
		count->delay++;
		count->delay_windows += ack.cwnd;
	}
}

SEC("struct_ops")
void BPF_PROG(witness_init, struct sock *sk)
{
	struct watched *flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	base_init(sk);
	if (flow)
		hystart_restart(&flow->state);
}

SEC("struct_ops")
void BPF_PROG(witness_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct watched *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 zero = 0;
	struct seen *count = bpf_map_lookup_elem(&seen, &zero);

	if (!flow || !count || flow->over) {
		cubictcp_acked(sk, sample);
	} else if (tp->snd_cwnd < tp->snd_ssthresh && !kernels(sk)->found) {
		compare(sk, flow, sample, count);
	} else {
		flow->over = 1;
		count->over++;
		cubictcp_acked(sk, sample);
	}
}

SEC("struct_ops")
void BPF_PROG(witness_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	base_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
u32 BPF_PROG(witness_ssthresh, struct sock *sk)
{
	return base_ssthresh(sk);
}

SEC("struct_ops")
void BPF_PROG(witness_set_state, struct sock *sk, u8 new_state)
{
	struct watched *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	u32 zero = 0;
	struct seen *count = bpf_map_lookup_elem(&seen, &zero);

	base_state(sk, new_state);
	if (!flow || !count || flow->over || new_state < STATE_CWR)
		return;
	flow->over = 1;
	count->over++;
	count->interrupted++;
}

SEC("struct_ops")
u32 BPF_PROG(witness_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops witness = {
	.init = (void *)witness_init,
	.pkts_acked = (void *)witness_pkts_acked,
	.cong_avoid = (void *)witness_cong_avoid,
	.ssthresh = (void *)witness_ssthresh,
	.set_state = (void *)witness_set_state,
	.undo_cwnd = (void *)witness_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "onramp_witness",
};
