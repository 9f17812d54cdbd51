/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * plain: slow start until loss, ECN or timeout. What Ataei Kachooei et al. 2022 and Peters et al. 2021 call "HyStart
 * off": the base's congestion avoidance with nothing that ends slow start early. The null policy that every other
 * algorithm is measured against.
 */
#ifndef ONRAMP_PLAIN_H
#define ONRAMP_PLAIN_H

#include "algorithm.h"

struct plain {
	u64 unused;
};

#define PLAIN_CONTROL "onramp_plain"
#define PLAIN_PARAMETERS(X)
#define PLAIN_OUTCOMES(X)
#define PLAIN_EXPORTS(X)
#define PLAIN_TRACK(X)
#define PLAIN_PICTURE(GAUGE, BARS, PHASE)
#define PLAIN_TRAITS (TRAIT_BASELINE | TRAIT_SLEEPS)
#define PLAIN_READS 0

struct plain_params {
	u64 unused;
};

static __always_inline void plain_restart(struct plain *state)
{
	(void)state;
}

static __always_inline void plain_on_ack(struct plain *state, const struct plain_params *params, const struct ack *ack,
					 struct verdict *verdict)
{
	(void)state;
	(void)params;
	(void)ack;
	(void)verdict;
}

static __always_inline u64 plain_sleeps_until(const struct plain *state, const struct plain_params *params,
					      const struct verdict *verdict)
{
	(void)state;
	(void)params;
	(void)verdict;
	return ~0ULL;
}

LOSS_LEFT_TO_BASE(plain)

#endif
