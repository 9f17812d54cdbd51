/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* No program: the map of learned paths, and their settings. The loader makes and pins them. */
#include "kernel/paths.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
