/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* No program: the maps that the selection and all algorithms share. The loader makes and pins them. */
#include "kernel/profiles.bpf.h"
#include "kernel/profile_names.bpf.h"
#include "kernel/starts.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
