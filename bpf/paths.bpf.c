/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* No program: the map of learned paths. The loader makes and pins it. */
#include "kernel/paths.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
