/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A sketch of many rates in little memory, from which their median is read: a histogram whose bins grow with the rate.
 * Every octave between 1 kB/s and 17 GB/s is cut into 18 equal steps, so a bin is never wider than a 18th of its lower
 * edge. The value that stands for a bin is the harmonic mean of its edges, which makes the error the same at both: at
 * most 1 in 37, 2.7 %, against sorting all rates. Rates beyond the ends count as the ends.
 *
 * Ataei Kachooei et al. 2022 keep every estimate of a round in an array and leaves the memory for it as future work.
 *
 * Use: embed a struct rate_sketch, rate_sketch_clear it (zeroed is cleared), rate_sketch_insert every rate,
 * rate_sketch_median. An insertion is a few instructions; clearing and the median go through all bins.
 */
#ifndef ONRAMP_RATE_SKETCH_H
#define ONRAMP_RATE_SKETCH_H

#include "base.h"

/* Logarithm to base 2 of the lowest rate, bytes per second. */
#define RATE_SKETCH_LOWEST 10
#define RATE_SKETCH_OCTAVES 24
/* Equal parts of an octave. */
#define RATE_SKETCH_STEPS 18
#define RATE_SKETCH_BINS (RATE_SKETCH_OCTAVES * RATE_SKETCH_STEPS)
/* Rates counted; a round that has more is judged by its first. */
#define RATE_SKETCH_FULL 65535

struct rate_sketch {
	u16 histogram[RATE_SKETCH_BINS] __attribute__((aligned(8))); /* rates in each bin */
	u32 samples;						     /* rates in all bins */
	u32 unused;
};

static __always_inline void rate_sketch_clear(struct rate_sketch *sketch)
{
	__builtin_memset(sketch->histogram, 0, sizeof(sketch->histogram));
	sketch->samples = 0;
}

/* The bin of a rate in bytes per second. */
static __always_inline u32 rate_sketch_bin(u64 rate)
{
	u32 octave = 0;
	u64 rest;

	rate = max_u64(rate, 1ULL << RATE_SKETCH_LOWEST);
	rate = min_u64(rate, (1ULL << (RATE_SKETCH_LOWEST + RATE_SKETCH_OCTAVES)) - 1);
	rest = rate >> RATE_SKETCH_LOWEST;
	for (u32 bits = 16; bits; bits /= 2) {
		if (rest >> bits) {
			rest >>= bits;
			octave += bits;
		}
	}
	rest = rate - (1ULL << (RATE_SKETCH_LOWEST + octave));
	return octave * RATE_SKETCH_STEPS + (u32)((rest * RATE_SKETCH_STEPS) >> (RATE_SKETCH_LOWEST + octave));
}

/* The rate that stands for a bin, bytes per second. */
static __always_inline u64 rate_sketch_value(u32 bin)
{
	u64 octave = bin / RATE_SKETCH_STEPS;
	u64 step = bin % RATE_SKETCH_STEPS + RATE_SKETCH_STEPS;

	return ((2 * step * (step + 1)) << (RATE_SKETCH_LOWEST + octave)) / (RATE_SKETCH_STEPS * (2 * step + 1));
}

static __always_inline void rate_sketch_insert(struct rate_sketch *sketch, u64 rate)
{
	u32 bin = rate_sketch_bin(rate);

	/* Always true, which the compiler may know but the kernel's verifier must see. */
	__asm__ volatile("" : "+r"(bin));
	if (bin >= RATE_SKETCH_BINS || sketch->samples >= RATE_SKETCH_FULL)
		return;
	sketch->histogram[bin]++;
	sketch->samples++;
}

/* The rate that stands for the median, of an even number the lower one of the two; 0: no rates. */
static __always_inline u64 rate_sketch_median(const struct rate_sketch *sketch)
{
	u64 before = ((u64)sketch->samples + 1) / 2;
	u64 counted = 0;
	u32 bin = 0;

	if (!sketch->samples)
		return 0;
	/* The median's bin is the number of bins up to which fewer were counted. A sign instead of a comparison: no
	 * branches for the verifier to follow. */
	for (u32 i = 0; i < RATE_SKETCH_BINS; i++) {
		counted += sketch->histogram[i];
		bin += (u32)((counted - before) >> 63);
	}
	return rate_sketch_value(bin);
}

#endif
