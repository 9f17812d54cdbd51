/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "algorithm/spacing.h"

#define ALGORITHM spacing
#define ALGORITHM_UPPER SPACING
#include "kernel/congestion_ops.bpf.h"
