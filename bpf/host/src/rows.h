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

struct track_row {
	const char *title, *unit, *limit_title;
};

/* TRACK_NONE: there is none. */
struct track_reading {
	u32 value, limit;
};

/* A title that is null: there is no such part. */
struct picture_row {
	const char *gauge, *bars_title, *bars_unit, *phase, *phase_names;
	u64 bars[PICTURE_BARS_MAX];
	u32 highest, bar_count, phase_at, unused;
};

struct algorithm_row {
	const char *name, *control, *about, *source;
	const struct parameter_row *parameters;
	const struct outcome_row *outcomes;
	const struct export_row *exports;
	const struct track_row *tracks;
	u32 parameter_count, outcome_count, export_count, track_count, traits;
	/* Bytes of all its state, and of the first part, which every flow keeps. */
	u32 state_size, kept_size, unused;
	void (*restart)(void *);
	void (*on_ack)(void *, const void *, const struct ack *, struct verdict *);
	u32 (*on_loss)(void *, const void *, const struct ack *, u32);
	void (*track)(const void *, const void *, const struct ack *, struct track_reading *);
	void (*picture)(const void *, struct picture_row *);
};

extern const struct algorithm_row onramp_algorithms[];
extern const u32 onramp_algorithm_count;
/* Numbers of rows. */
extern const u32 onramp_default_algorithm, onramp_cubic_algorithm;

#endif
