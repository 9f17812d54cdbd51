/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "algorithm/fixed.h"

#define ALGORITHM fixed
#define ALGORITHM_UPPER FIXED
#include "kernel/congestion_ops.bpf.h"
