/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The table of all algorithms that shim.c makes of the headers' declarations. */
#ifndef ONRAMP_ROWS_H
#define ONRAMP_ROWS_H

#include "../../algorithm/algorithm.h"

struct parameter_row {
	const char *name, *unit, *choices, *help;
	u64 def, min, max;
};

struct outcome_row {
	const char *name, *help;
};

struct export_row {
	const char *name, *unit, *help;
	u32 offset, count;
};

struct algorithm_row {
	const char *name, *control, *about, *source;
	const struct parameter_row *parameters;
	const struct outcome_row *outcomes;
	const struct export_row *exports;
	u32 parameter_count, outcome_count, export_count, traits;
	/* Bytes of all its state, and of the first part, which every flow keeps. */
	u32 state_size, kept_size;
	void (*restart)(void *);
	void (*on_ack)(void *, const void *, const struct ack *, struct verdict *);
	u32 (*on_loss)(void *, const void *, const struct ack *, u32);
};

extern const struct algorithm_row onramp_algorithms[];
extern const u32 onramp_algorithm_count;
/* Numbers of rows. */
extern const u32 onramp_default_algorithm, onramp_cubic_algorithm;

#endif
