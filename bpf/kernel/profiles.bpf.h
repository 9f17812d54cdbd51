/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Which parameter set the rules of select.bpf.c have for a socket. That program writes it before it sets the control, whose
 * shell reads it when it begins with the flow: by name, for numbers of sets are other ones once the algorithm has been
 * detached and attached again. One map for all algorithms: profiles.bpf.c makes it, the loader pins it.
 */
#ifndef ONRAMP_PROFILES_BPF_H
#define ONRAMP_PROFILES_BPF_H

#include "../abi.h"
#include "types.bpf.h"
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct profile_name);
} profile_choices SEC(".maps");

#endif
