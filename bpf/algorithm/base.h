/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Fixed-width names for the pure algorithms. The BPF objects take them from kernel/types.bpf.h, the host build
 * from <stdint.h>; nothing below algorithm/ may know which of the two it is in.
 */
#ifndef ONRAMP_ALGORITHM_BASE_H
#define ONRAMP_ALGORITHM_BASE_H

#ifdef __bpf__
#include "../kernel/types.bpf.h"
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
#endif

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/*
 * What is done seldom, and would take the registers of what is done with every ACK. Such functions are not static: the
 * kernel's verifier looks at each by itself, once. So it knows nothing of their pointers, which they look at first.
 */
#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif

/* Before a loop that is to stay one: unrolled it would need more stack than a BPF program has. */
#ifdef __clang__
#define KEEP_LOOP _Pragma("clang loop unroll(disable)")
#else
#define KEEP_LOOP
#endif

static __always_inline u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static __always_inline u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

#endif
