/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "algorithm/ramp.h"

#define ALGORITHM ramp
#define ALGORITHM_UPPER RAMP
#include "kernel/congestion_ops.bpf.h"
