/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * fixed: exit slow start when the window reaches a given number of bytes. The instrument for download time against
 * exit point (Ataei Kachooei et al. 2022 figure 13) and for tests; not meant for hosts.
 */
#ifndef ONRAMP_FIXED_H
#define ONRAMP_FIXED_H

#include "algorithm.h"

struct fixed {
	u64 unused;
};

#define FIXED_CONTROL "onramp_fixed"
#define FIXED_PARAMETERS(X)                                                                                            \
	X(exit_window_bytes, "bytes", 0, 0, 4294967295, "", "window at which slow start is exited; 0: never")
#define FIXED_OUTCOMES(X)
#define FIXED_EXPORTS(X)
#define FIXED_TRACK(X)
#define FIXED_PICTURE(GAUGE, BARS, PHASE)
#define FIXED_TRAITS (TRAIT_BASELINE | TRAIT_SLEEPS | TRAIT_SLEEPS_BY_WINDOW)
#define FIXED_READS (READS(cwnd) | READS(mss))

struct fixed_params {
	FIXED_PARAMETERS(PARAMETER_FIELD)
};

static __always_inline void fixed_restart(struct fixed *state)
{
	(void)state;
}

static __always_inline void fixed_on_ack(struct fixed *state, const struct fixed_params *params, const struct ack *ack,
					 struct verdict *verdict)
{
	(void)state;
	if (!params->exit_window_bytes)
		return;
	if ((u64)ack->cwnd * ack->mss < params->exit_window_bytes) {
		verdict->outcome = OUTCOME_BELOW_THRESHOLD;
		return;
	}
	verdict->outcome = OUTCOME_EXIT;
	verdict->ssthresh = ack->cwnd;
}

static __always_inline u64 fixed_sleeps_until(const struct fixed *state, const struct fixed_params *params,
					      const struct verdict *verdict)
{
	(void)state;
	(void)verdict;
	return params->exit_window_bytes ? params->exit_window_bytes : ~0ULL;
}

LOSS_LEFT_TO_BASE(fixed)

#endif
