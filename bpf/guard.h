/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The guard of an attachment (docs/guard.md): some flows stay on the base as control, each flow that ends adds an
 * observation to its arm, and a test after each of them says whether the flows that run the algorithm are worse than
 * the control by more than a margin.
 *
 * The test is a mixture sequential probability ratio test (Robbins 1970; Johari et al. 2017), which may be looked at after
 * every flow without more false alarms. With n flows, mean and variance s^2 of each arm, D the harm beyond the margin and
 * V = s1^2 / n1 + s2^2 / n2, there is harm once D > 0 and
 *
 *	D^2 tau^2 / (2 V (V + tau^2)) >= ln(1 / alpha) + ln((V + tau^2) / V) / 2
 *
 * alpha is a third of 1 % for each of three metrics. tau is the harm that is found soonest. One that is too large costs a
 * logarithm, one that is too small the square: so it is a harm too large to wait for, 29 % less goodput, 41 % more time, 3 % more
 * retransmitted.
 *
 * Pure, as the headers of algorithm/: integers only, no division by what can be zero, no unbounded loop.
 */
#ifndef ONRAMP_GUARD_H
#define ONRAMP_GUARD_H

#include "algorithm/base.h"

/* What is compared. */
#define GUARD_METRIC_MAX 3
enum guard_metric {
	GUARD_RETRANSMITS = 0, /* bytes sent again, of all bytes sent, in 1/65536 */
	GUARD_GOODPUT = 1,     /* logarithm of goodput, see guard_goodput, in 1/1024 of a doubling */
	GUARD_FIRST = 2, /* logarithm of the time to GUARD_FIRST_BYTES, see guard_first, in 1/1024 of a doubling */
};

/* No observation of a metric. */
#define GUARD_UNSEEN 0xffffffff

/* Who is compared. */
#define GUARD_ARM_MAX 2
enum guard_arm_index {
	ARM_TREATED = 0, /* flows that run the algorithm */
	ARM_CONTROL = 1, /* flows that run the base alone */
};

/* A flow counts once it has had so many bytes acknowledged. */
#define GUARD_BYTES_MIN 100000

/* What comes first: what a start is for. A flow counts in that metric once it has had so many bytes acknowledged. */
#define GUARD_FIRST_BYTES 65536

/* Flows that each arm must have before anything is said, for means of so many are nearly normal. */
#define GUARD_FLOWS_MIN 100

/* Flows beyond these are not counted: with observations below 2^16 everything below fits 64 bits. */
#define GUARD_FLOWS_MAX (1ULL << 31)

/* An observation is below 1 << 16; means and margins are in 1 / (1 << 10) of its unit, variances in the square of that. */
#define GUARD_VALUE_BITS 16
#define GUARD_MEAN_BITS 10

/* Goodputs are counted from this power of two on, bytes per jiffy. */
#define GUARD_GOODPUT_LEAST 16

/* tau of each metric, in powers of two of its unit: of what is a logarithm that of goodput. */
#define GUARD_TAU_RETRANSMITS_BITS 11
#define GUARD_TAU_GOODPUT_BITS 9

/* ln(3 / 0.01) in 1/1024, and half of ln 2 in 1/2048, both rounded up. */
#define GUARD_EVIDENCE 5841
#define GUARD_HALF_LN_2 710

/* The kernel's, which knows it by its name. */
struct bpf_spin_lock {
	u32 val;
};

/* Observations of one metric. */
struct guard_sums {
	u64 flows; /* that have ended */
	u64 sum;
	u64 squares; /* of the deviations from the mean (Welford 1962) */
};

/* Flows of one arm that have ended. */
struct guard_arm {
	struct guard_sums metrics[GUARD_METRIC_MAX]; /* by enum guard_metric */
};

/* What an attachment's guard is to do, written by the loader, and what it has seen since. */
struct guard {
	struct bpf_spin_lock lock;     /* of what the kernel writes */
	u32 tripped_by;		       /* enum guard_metric, if it has tripped */
	u64 tripped_ns;		       /* since boot, suspended time included; 0: it has not tripped */
	u32 control_ppm;	       /* flows that stay on the base, of a million */
	u32 salt;		       /* odd; of this attachment */
	u32 margins[GUARD_METRIC_MAX]; /* harm that is allowed, in 1/1024 of the metric's unit; 0: not looked at */
	u32 unused;
	struct guard_arm arms[GUARD_ARM_MAX]; /* by enum guard_arm_index; as they were when it tripped */
};
_Static_assert(sizeof(struct guard) == 184, "guard is part of the ABI");

/* The arm of a flow by the kernel's hash of its addresses and ports, keyed since boot: by multiply-shift. */
static __always_inline u32 guard_arm_of(const struct guard *guard, u32 hash)
{
	return (u64)(hash * guard->salt) * 1000000 >> 32 < guard->control_ppm ? ARM_CONTROL : ARM_TREATED;
}

/*
 * Logarithm to base 2 of what is not 0, in 1/1024, rounded down. Without a branch, of which the verifier would follow each
 * way.
 */
static __always_inline u32 guard_log2(u64 number)
{
	u32 whole = 0, fraction = 0;
	u64 mantissa;

	KEEP_LOOP
	for (u32 step = 32; step; step >>= 1) {
		/* 1 where bits are left of so many, below 2^32 as they are. */
		u64 more = (number >> step >> whole) + ~0U;

		whole += (u32)(more >> 32) * step;
	}
	/* From 1 to 2, of 31 binary places; each squaring gives a place of the logarithm. */
	mantissa = number << (63 - whole) >> 32;
	KEEP_LOOP
	for (u32 place = 0; place < 10; place++) {
		u64 square = mantissa * mantissa;
		u64 doubled = square >> 63;

		mantissa = square >> 31 >> doubled;
		fraction = fraction << 1 | (u32)doubled;
	}
	return whole << 10 | fraction;
}

/* Of a flow that has sent `sent` bytes, `again` of them not for the first time. */
static __always_inline u32 guard_retransmits(u64 again, u64 sent)
{
	u64 limit = (1 << GUARD_VALUE_BITS) - 1;

	if (again >= sent)
		return sent ? (u32)limit : 0;
	/* So that neither overflows. */
	if (sent >> 48) {
		again >>= 16;
		sent >>= 16;
	}
	return (u32)min_u64((again << GUARD_VALUE_BITS) / max_u64(sent, 1), limit);
}

/*
 * Of a flow that had `bytes` acknowledged while it had data to send for so many jiffies. Paths differ by orders of
 * magnitude: of logarithms the mean difference is a ratio of geometric means, to which every flow adds the same.
 */
static __always_inline u32 guard_goodput(u64 bytes, u32 jiffies)
{
	u32 up = guard_log2(max_u64(bytes, 1)) + (GUARD_GOODPUT_LEAST << 10);
	u32 down = guard_log2(max_u64(jiffies, 1));

	return up > down ? (u32)min_u64(up - down, (1 << GUARD_VALUE_BITS) - 1) : 0;
}

/* Of a flow that had data to send for so many jiffies until GUARD_FIRST_BYTES were acknowledged; 0: they never were. */
static __always_inline u32 guard_first(u32 jiffies)
{
	return jiffies ? guard_log2(jiffies) : GUARD_UNSEEN;
}

/* In 1/1024 of the unit. */
static __always_inline u64 guard_mean(const struct guard_sums *sums)
{
	return (sums->sum << GUARD_MEAN_BITS) / max_u64(sums->flows, 1);
}

/* Adds an observation. */
static __always_inline void guard_add(struct guard_sums *sums, u32 observed)
{
	s64 value = (s64)observed << GUARD_MEAN_BITS;
	u64 flows = sums->flows;
	s64 before, after;

	if (observed == GUARD_UNSEEN || flows >= GUARD_FLOWS_MAX)
		return;
	before = value - (s64)guard_mean(sums);
	sums->sum += observed;
	sums->flows++;
	after = value - (s64)guard_mean(sums);
	/* Of the same sign but for rounding; the first one has no mean to deviate from. */
	if (flows && (before < 0) == (after < 0))
		sums->squares += (u64)(before * after) >> (2 * GUARD_MEAN_BITS);
}

/* Variance of the mean, in 1/2^20 of the unit's square. One unit's worth is what rounding hides. */
static __always_inline u64 guard_variance(const struct guard_sums *sums)
{
	u64 variance = sums->squares / max_u64(sums->flows - 1, 1) + 1;

	return (variance << (2 * GUARD_MEAN_BITS)) / max_u64(sums->flows, 1);
}

/* Whether the first mean is above the second by more than the margin, of flows as many as GUARD_FLOWS_MIN or more. */
static __always_inline bool guard_above(u64 high, u64 low, u64 variance, u32 margin, u32 tau_bits)
{
	u64 tau = 1ULL << (2 * (tau_bits + GUARD_MEAN_BITS));
	u64 beyond, evidence, doubt;

	if (high <= low + margin)
		return false;
	beyond = high - low - margin;
	variance = max_u64(variance, 1);
	/* D^2 / 2V, in 1/1024; cut where it is beyond all doubt, so that the product fits. */
	evidence = min_u64((beyond * beyond << 9) / variance, 1 << 24);
	evidence = evidence * ((tau << 20) / (variance + tau)) >> 20;
	/* With nine binary places, for as many there is room. */
	doubt = (u64)(guard_log2(((variance + tau) << 9) / variance) - (9 << 10) + 1) * GUARD_HALF_LN_2 >> 11;
	return evidence >= GUARD_EVIDENCE + doubt + 1;
}
_Static_assert(2 * (GUARD_VALUE_BITS + GUARD_MEAN_BITS) + 9 < 64, "D^2 fits");
_Static_assert(GUARD_VALUE_BITS + GUARD_MEAN_BITS + 31 < 64, "a sum fits as a mean, of GUARD_FLOWS_MAX flows");
_Static_assert(2 * GUARD_VALUE_BITS + 31 < 64, "squares of GUARD_FLOWS_MAX flows fit");
_Static_assert(2 * (GUARD_VALUE_BITS + GUARD_MEAN_BITS) + 2 + 9 < 64, "a variance fits");
_Static_assert(2 * (GUARD_TAU_RETRANSMITS_BITS + GUARD_MEAN_BITS) + 20 < 64, "tau^2 fits");
_Static_assert(GUARD_FLOWS_MIN > 1, "a variance takes two");
_Static_assert(GUARD_FIRST_BYTES < GUARD_BYTES_MIN, "a flow that counts has had the first bytes acknowledged");

/* Whether the treated arm is worse by more than the margin. */
static __always_inline bool guard_is_worse(const struct guard *guard, u32 metric)
{
	const struct guard_sums *treated = &guard->arms[ARM_TREATED].metrics[metric];
	const struct guard_sums *control = &guard->arms[ARM_CONTROL].metrics[metric];
	u32 tau_bits = metric == GUARD_RETRANSMITS ? GUARD_TAU_RETRANSMITS_BITS : GUARD_TAU_GOODPUT_BITS;
	u64 mean, other, variance;

	if (!guard->margins[metric] || treated->flows < GUARD_FLOWS_MIN || control->flows < GUARD_FLOWS_MIN)
		return false;
	mean = guard_mean(treated);
	other = guard_mean(control);
	variance = guard_variance(treated) + guard_variance(control);
	/* Less goodput is harm, and more of the others. */
	return guard_above(metric == GUARD_GOODPUT ? other : mean, metric == GUARD_GOODPUT ? mean : other, variance,
			   guard->margins[metric], tau_bits);
}

/*
 * A flow of an arm has ended, with an observation of each metric or GUARD_UNSEEN, at a time since boot that is not 0. Returns
 * whether the guard has tripped, now or before; what it has seen stays as it is then.
 */
static __always_inline bool guard_record(struct guard *guard, u32 arm, const u32 observed[GUARD_METRIC_MAX], u64 now_ns)
{
	struct guard_arm *to = &guard->arms[arm == ARM_CONTROL ? ARM_CONTROL : ARM_TREATED];

	if (guard->tripped_ns)
		return true;
	KEEP_LOOP
	for (u32 metric = 0; metric < GUARD_METRIC_MAX; metric++)
		guard_add(&to->metrics[metric], observed[metric]);
	KEEP_LOOP
	for (u32 metric = 0; metric < GUARD_METRIC_MAX; metric++) {
		if (guard_is_worse(guard, metric)) {
			guard->tripped_by = metric;
			guard->tripped_ns = now_ns;
			return true;
		}
	}
	return false;
}

#endif
