/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The profiles that rules name, by the number that struct select_rule has for them. */
#ifndef ONRAMP_PROFILE_NAMES_BPF_H
#define ONRAMP_PROFILE_NAMES_BPF_H

#include "../abi.h"
#include "../select.h"
#include "types.bpf.h"
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SELECT_PROFILES_MAX);
	__type(key, u32);
	__type(value, struct profile_name);
} profile_names SEC(".maps");

#endif
