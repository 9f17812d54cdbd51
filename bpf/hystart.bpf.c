/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "algorithm/hystart.h"

#define ALGORITHM hystart
#define ALGORITHM_UPPER HYSTART
#include "kernel/congestion_ops.bpf.h"
