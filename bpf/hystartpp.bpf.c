/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "algorithm/hystartpp.h"

#define ALGORITHM hystartpp
#define ALGORITHM_UPPER HYSTARTPP
#include "kernel/congestion_ops.bpf.h"
