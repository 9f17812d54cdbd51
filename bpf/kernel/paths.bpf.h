/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The paths that connections have learned (start/path.h), and what an operator sets of them: one map of each for all algorithms,
 * which paths.bpf.c makes and the loader pins once an attachment has a start policy.
 */
#ifndef ONRAMP_PATHS_BPF_H
#define ONRAMP_PATHS_BPF_H

#include "../start/path.h"
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PATHS_MAX);
	__type(key, struct path_key);
	__type(value, struct path);
} paths SEC(".maps");

/* To an address each, at first. */
struct path_settings path_settings_here SEC(".data.path_settings") = {
	.lifetime_ns = PATH_LIFETIME_S * 1000000000ULL,
	.mask_ipv4 = ~0U,
	.mask_ipv6 = { ~0U, ~0U, ~0U, ~0U },
};

#endif
