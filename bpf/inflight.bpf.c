/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "algorithm/inflight.h"

#define ALGORITHM inflight
#define ALGORITHM_UPPER INFLIGHT
#include "kernel/congestion_ops.bpf.h"
