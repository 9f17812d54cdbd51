/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The table of all algorithms of the registry, for Rust. */
#include "../../algorithm/registry.h"
#include "../table.h"

#define ALGORITHM_NUMBER(alg, ALG, about, source) alg##_number,
#define NUMBER(alg) alg##_number
#define NUMBER_OF(alg) NUMBER(alg)
enum { ALGORITHMS(ALGORITHM_NUMBER) };
const u32 onramp_default_algorithm = NUMBER_OF(DEFAULT_ALGORITHM);
const u32 onramp_cubic_algorithm = NUMBER_OF(CUBIC_ALGORITHM);

/* For who paces as ramp does. */
const u32 onramp_ramp_gain_pct = RAMP_GAIN_PCT;
