/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * All differences between the kernels that one set of objects loads on, one entry each: since when, what is different,
 * and when the entry may go. Each test is a constant once libbpf has relocated the object, so the verifier sees only one
 * side. What must not be in an object at all for a kernel is cleared by loader/src/object/operations.rs.
 */
#ifndef ONRAMP_COMPAT_BPF_H
#define ONRAMP_COMPAT_BPF_H

#include "types.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/*
 * 7.1 (d1e59a469737): the operation cwnd_event_tx_start is called instead of cwnd_event with CA_EVENT_TX_START, and the
 * kfuncs cubictcp_cwnd_event and bbr_cwnd_event became *_cwnd_event_tx_start. The operation shows which of them exists:
 * before 6.4 the verifier refuses a program that takes the address of a kfunc. The loader clears the operation before 7.1.
 * May go when 7.1 is the oldest kernel supported.
 */
struct tcp_congestion_ops___tx_start {
	void (*cwnd_event_tx_start)(struct sock *sk);
} __attribute__((preserve_access_index));

static __always_inline bool has_tx_start_operation(void)
{
	struct tcp_congestion_ops___tx_start *ops = 0;

	return bpf_core_field_exists(ops->cwnd_event_tx_start);
}

/*
 * 6.10 (57bfc7605ca5, "tcp: Add new args for cong_control in tcp_congestion_ops"): cong_control has four arguments; before
 * it has two, the socket and the rate sample. bbr_main has the same arguments, so bbr.bpf.h declares it for both.
 * May go when 6.10 is the oldest kernel supported.
 */
struct tcp_congestion_ops___flags {
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *sample);
};

static __always_inline bool has_four_control_arguments(void)
{
	return bpf_core_type_matches(struct tcp_congestion_ops___flags);
}

/*
 * 5.13 on x86-64, 6.10 elsewhere: BPF may call the functions of CUBIC and BBR, if the kernel has them at all. They are
 * declared weak, so that an object loads without them. Then the loader accepts only Reno as the base, which every kernel
 * has. May go when no kernel without CUBIC is supported.
 */
#define KFUNC_OF_SOME __weak __ksym

/*
 * A kernel built without IPv6 has no IPv6 addresses in its sockets. Stays.
 */
static __always_inline bool has_ipv6_addresses(const struct sock_common *common)
{
	return common->skc_family == AF_INET6 && bpf_core_field_exists(common->skc_v6_daddr);
}

/*
 * Some older kernels call release for sockets that init was never called for, as listening ones. Costs a bit that is
 * read when a flow ends without state; may go when tests/kernels has no such kernel.
 */
static __always_inline bool was_initialised(struct sock *sk)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;

	return BPF_CORE_READ_BITFIELD(icsk, icsk_ca_initialized);
}

/*
 * Accurate ECN, which older kernels do not have: the second bit of tcp_sock.ecn_flags that says that marks were agreed
 * upon. The kernels without it leave the bit at 0. May go with them.
 */
#define TCP_ECN_RFC3168 0x01
#define TCP_ECN_ACCURATE 0x10
#define TCP_ECN_ANY (TCP_ECN_RFC3168 | TCP_ECN_ACCURATE)

#endif
