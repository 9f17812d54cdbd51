/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The paths that are remembered for sockets, and how far each has come with it (shell/start.h). Rules of select.bpf.c write
 * them before they set the control, whose shell begins with them. One map for all algorithms: profiles.bpf.c makes it, the
 * loader pins it.
 */
#ifndef ONRAMP_STARTS_BPF_H
#define ONRAMP_STARTS_BPF_H

#include "../start/resume.h"
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct start);
} starts SEC(".maps");

#endif
