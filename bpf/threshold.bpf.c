/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "algorithm/threshold.h"

#define ALGORITHM threshold
#define ALGORITHM_UPPER THRESHOLD
#include "kernel/congestion_ops.bpf.h"
