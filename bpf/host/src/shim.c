/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The pure algorithms behind one table, for Rust. Everything in it comes from the headers' own declarations; the
 * layouts are repeated in lib.rs and checked against `onramp_layout`.
 */
#include <stddef.h>

#include "../../algorithm/registry.h"

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
	u32 parameter_count, outcome_count, export_count, state_size, traits;
	void (*restart)(void *);
	void (*on_ack)(void *, const void *, const struct ack *, struct verdict *);
	u32 (*on_loss)(void *, const void *, const struct ack *, u32);
};

#define PARAMETER_ROW(name, unit, def, min, max, choices, help) { #name, unit, choices, help, def, min, max },
#define EXPORT_ROW(alg, field, unit, count, help) { #field, unit, help, offsetof(struct alg, field), count },
#define OUTCOME_ROW(constant, name, help) [constant] = { #name, help },
/* Each table ends in an empty row, so an algorithm without parameters or exports still has one. */
#define DEFINE_TABLES(alg, ALG, about, source)                                                                         \
	static const struct parameter_row alg##_parameters[] = { ALG##_PARAMETERS(PARAMETER_ROW){ 0 } };               \
	static const struct outcome_row alg##_outcomes[OUTCOME_MAX] = { COMMON_OUTCOMES(OUTCOME_ROW)                   \
										ALG##_OUTCOMES(OUTCOME_ROW) };         \
	static const struct export_row alg##_exports[] = { ALG##_EXPORTS(EXPORT_ROW){ 0 } };                           \
	static void alg##_restart_any(void *state)                                                                     \
	{                                                                                                              \
		alg##_restart(state);                                                                                  \
	}                                                                                                              \
	static void alg##_on_ack_any(void *state, const void *params, const struct ack *ack, struct verdict *verdict)  \
	{                                                                                                              \
		alg##_on_ack(state, params, ack, verdict);                                                             \
	}                                                                                                              \
	static u32 alg##_on_loss_any(void *state, const void *params, const struct ack *ack, u32 base)                 \
	{                                                                                                              \
		return alg##_on_loss(state, params, ack, base);                                                        \
	}
ALGORITHMS(DEFINE_TABLES)

#define COUNT(table) (sizeof(table) / sizeof((table)[0]) - 1)
#define ALGORITHM_ROW(alg, ALG, about, source)                                                                         \
	{ #alg,                                                                                                        \
	  ALG##_CONTROL,                                                                                               \
	  about,                                                                                                       \
	  source,                                                                                                      \
	  alg##_parameters,                                                                                            \
	  alg##_outcomes,                                                                                              \
	  alg##_exports,                                                                                               \
	  COUNT(alg##_parameters),                                                                                     \
	  OUTCOME_MAX,                                                                                                 \
	  COUNT(alg##_exports),                                                                                        \
	  sizeof(struct alg),                                                                                          \
	  ALG##_TRAITS,                                                                                                \
	  alg##_restart_any,                                                                                           \
	  alg##_on_ack_any,                                                                                            \
	  alg##_on_loss_any },

const struct algorithm_row onramp_algorithms[] = { ALGORITHMS(ALGORITHM_ROW) };
const u32 onramp_algorithm_count = sizeof(onramp_algorithms) / sizeof(onramp_algorithms[0]);

/* Sizes of what crosses, for lib.rs to check its own declarations against. */
const u32 onramp_layout[] = { sizeof(struct ack),	    sizeof(struct verdict),	sizeof(struct algorithm_row),
			      sizeof(struct parameter_row), sizeof(struct outcome_row), sizeof(struct export_row) };
