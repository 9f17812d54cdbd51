/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "algorithm/plain.h"

#define ALGORITHM plain
#define ALGORITHM_UPPER PLAIN
#include "kernel/congestion_ops.bpf.h"
