/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "algorithm/best.h"

#define ALGORITHM best
#define ALGORITHM_UPPER BEST
#include "kernel/congestion_ops.bpf.h"
