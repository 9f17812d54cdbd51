/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "algorithm/search.h"

#define ALGORITHM search
#define ALGORITHM_UPPER SEARCH
#include "kernel/congestion_ops.bpf.h"
