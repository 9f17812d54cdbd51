/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What connections learn of their paths, and take from there, under a claim (start/path.h). An attachment without a start policy
 * has neither the map nor anything of this in its code.
 */
#ifndef ONRAMP_LEARN_BPF_H
#define ONRAMP_LEARN_BPF_H

#include "../shell/start.h"
#include "paths.bpf.h"
#include "view.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

/* What connections do at their start, a bit for each of enum start_policy. Set by the loader, in a section of its own. */
const volatile u32 start_policies SEC(".rodata.start") = 0;

/* Which path a connection has, by the bits of its peer's address that say so. Those of IPv4 may be mapped into IPv6. */
static __always_inline void name_path(const struct sock *sk, struct path_key *key)
{
	const struct sock_common *common = &sk->__sk_common;
	u32 *address = key->address;

	if (has_ipv6_addresses(common)) {
		for (u32 i = 0; i < 4; i++)
			address[i] = common->skc_v6_daddr.in6_u.u6_addr32[i];
	} else {
		address[2] = bpf_htonl(0xffff);
		address[3] = common->skc_daddr;
	}
	if (!address[0] && !address[1] && address[2] == bpf_htonl(0xffff)) {
		address[3] &= path_settings_here.mask_ipv4;
	} else {
		for (u32 i = 0; i < 4; i++)
			address[i] &= path_settings_here.mask_ipv6[i];
	}
	key->netns_cookie = BPF_CORE_READ(common, skc_net.net, net_cookie);
}

/* Remembers what a connection has seen of its path. Entries are replaced whole, so that none is read half written. */
static __noinline void learn_path(struct sock *sk, const struct flow_header *flow, bool ends)
{
	u64 now_ns = bpf_ktime_get_boot_ns();
	struct path_sample sample;
	struct path_key key = {};
	struct path path = {};
	const struct path *known;

	sample_path(sk, flow, ends, &sample);
	if (!sample.rate)
		return;
	name_path(sk, &key);
	known = bpf_map_lookup_elem(&paths, &key);
	if (known)
		path = *known;
	if (path_learn(&path, &sample, now_ns, path_settings_here.lifetime_ns))
		bpf_map_update_elem(&paths, &key, &path, 0);
}

/*
 * Has a connection start from what is remembered of its path, if there is something to gain and no other has the claim. False:
 * it starts as without memory.
 */
static __always_inline bool claim_path(struct sock *sk, struct start *start)
{
	u64 now_ns = bpf_ktime_get_boot_ns(), lasts_ns, before_ns;
	struct path_key key = {};
	struct path *path;

	name_path(sk, &key);
	path = bpf_map_lookup_elem(&paths, &key);
	if (!path || !path_is_known(path, now_ns, path_settings_here.lifetime_ns))
		return false;
	before_ns = path->claim_ends_ns;
	path_recall(path, now_ns, path_settings_here.lifetime_ns, start_policies, start);
	if (path_is_claimed(path, now_ns) || !start_gains(start, view_mss(sk), view_cwnd(sk)) ||
	    !start_knows_rtt(start, view_min_rtt_us(sk)))
		return false;
	lasts_ns = claim_lasts_ns(path, !view_bytes_sent(sk));
	if (__sync_val_compare_and_swap(&path->claim_ends_ns, before_ns, now_ns + lasts_ns) != before_ns)
		return false;
	start->claim_ns = now_ns + lasts_ns;
	start->late_us = view_now_us(sk) + lasts_ns / 1000;
	return true;
}

/* The connection has more to send than an initial window: its claim holds longer, unless another has the path by now. */
static __noinline void extend_claim(struct sock *sk, struct start *start)
{
	struct path_key key = {};
	struct path *path;
	u64 more_ns;

	name_path(sk, &key);
	path = bpf_map_lookup_elem(&paths, &key);
	if (!path)
		return;
	more_ns = claim_lasts_ns(path, false) - claim_lasts_ns(path, true);
	if (__sync_val_compare_and_swap(&path->claim_ends_ns, start->claim_ns, start->claim_ns + more_ns) !=
	    start->claim_ns) {
		start_ends(start, START_LATE);
		return;
	}
	start->claim_ns += more_ns;
	start->late_us += more_ns / 1000;
}

/* Gives the claim of a start back, and counts how it went. */
static __noinline void give_back_claim(struct sock *sk, struct start *start)
{
	u64 claim_ns = start->claim_ns;
	struct path_key key = {};
	struct path *path;

	start->claim_ns = 0;
	name_path(sk, &key);
	path = bpf_map_lookup_elem(&paths, &key);
	if (path && __sync_val_compare_and_swap(&path->claim_ends_ns, claim_ns, 0) == claim_ns)
		path_judge(path, start->end);
}

#endif
