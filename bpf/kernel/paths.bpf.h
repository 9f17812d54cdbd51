/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The paths that connections have learned (start/path.h): one map for all algorithms, which paths.bpf.c makes and the loader pins
 * once an attachment has a start policy.
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

#endif
