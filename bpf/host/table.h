/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The pure algorithms that ALGORITHMS and ALGORITHMS_OF name, as registry.h does, behind one table. Everything in it comes
 * from the headers' own declarations. Compiled for the host, and for BPF of an algorithm from outside the tree.
 */
#ifndef ONRAMP_TABLE_H
#define ONRAMP_TABLE_H

#include "src/rows.h"

/* What an object from outside the tree says of itself, as onramp_abi. */
#define OBJECT_MARK "onramp ABI"
struct object_abi {
	char mark[12];
	u32 version;
};

#define PARAMETER_ROW(name, unit, def, min, max, choices, help) { #name, unit, choices, help, def, min, max },
#define EXPORT_ROW(alg, field, unit, count, help) { #field, unit, help, __builtin_offsetof(struct alg, field), count },
#define OUTCOME_ROW(constant, name, help) [constant] = { #name, help },
/* Each table ends in an empty row, so an algorithm without parameters or exports still has one. */
#define DEFINE_TABLES(alg, ALG, about, source)                                                                         \
	static const struct parameter_row alg##_parameters[] = { ALG##_PARAMETERS(PARAMETER_ROW){ 0 } };               \
	static const struct outcome_row alg##_outcomes[OUTCOME_MAX] = { COMMON_OUTCOMES(OUTCOME_ROW)                   \
										ALG##_OUTCOMES(OUTCOME_ROW) };         \
	static const struct export_row alg##_exports[] = { ALG##_EXPORTS(EXPORT_ROW){ 0 } };                           \
	static u32 alg##_on_loss_any(void *state, const void *params, const struct ack *ack, u32 base)                 \
	{                                                                                                              \
		return alg##_on_loss(state, params, ack, base);                                                        \
	}
ALGORITHMS(DEFINE_TABLES)

#define DEFINE_CALLS(alg, ALG, about, source)                                                                          \
	_Static_assert(!(ALG##_TRAITS & TRAIT_EXTRA), #alg " has a second part: its row is an EXTRA");                 \
	enum { alg##_state_size = sizeof(struct alg) };                                                                \
	static void alg##_restart_any(void *state)                                                                     \
	{                                                                                                              \
		alg##_restart(state);                                                                                  \
	}                                                                                                              \
	static void alg##_on_ack_any(void *state, const void *params, const struct ack *ack, struct verdict *verdict)  \
	{                                                                                                              \
		alg##_on_ack(state, params, ack, verdict);                                                             \
	}
/* The second part is behind the first, where events have it, too. */
#define DEFINE_CALLS_EXTRA(alg, ALG, about, source)                                                                    \
	_Static_assert(ALG##_TRAITS & TRAIT_EXTRA, #alg " has no second part: its row is an X");                       \
	_Static_assert(sizeof(struct alg) % 8 == 0 && sizeof(struct alg##_extra) % 8 == 0, "both are aligned");        \
	enum { alg##_state_size = sizeof(struct alg) + sizeof(struct alg##_extra) };                                   \
	static struct alg##_extra *alg##_extra_of(void *state)                                                         \
	{                                                                                                              \
		return (struct alg##_extra *)((struct alg *)state + 1);                                                \
	}                                                                                                              \
	static void alg##_restart_any(void *state)                                                                     \
	{                                                                                                              \
		alg##_restart(state);                                                                                  \
		alg##_restart_extra(alg##_extra_of(state));                                                            \
	}                                                                                                              \
	static void alg##_on_ack_any(void *state, const void *params, const struct ack *ack, struct verdict *verdict)  \
	{                                                                                                              \
		if (alg##_wants_extra(params))                                                                         \
			alg##_on_ack_extra(alg##_extra_of(state), params, ack, verdict);                               \
		alg##_on_ack(state, params, ack, verdict);                                                             \
	}
ALGORITHMS_OF(DEFINE_CALLS, DEFINE_CALLS_EXTRA)

#define TRACK_ROW(title, unit, value, limit_title, limit) { title, unit, limit_title },
#define TRACK_READING(title, unit, value, limit_title, limit) *reading = (struct track_reading){ value, limit };
#define GAUGE_OF(title, most)                                                                                          \
	picture->gauge = title;                                                                                        \
	picture->highest = most;
#define BARS_OF(title, unit, count)                                                                                    \
	picture->bars_title = title;                                                                                   \
	picture->bars_unit = unit;                                                                                     \
	picture->bar_count = count;
#define PHASE_OF(title, names, at)                                                                                     \
	picture->phase = title;                                                                                        \
	picture->phase_names = names;                                                                                  \
	picture->phase_at = at;
#define DEFINE_SHOWN(alg, ALG, about, source)                                                                          \
	static const struct track_row alg##_tracks[] = { ALG##_TRACK(TRACK_ROW){ 0 } };                                \
	static void alg##_track_any(const void *kept, const void *values, const struct ack *ack,                       \
				    struct track_reading *reading)                                                     \
	{                                                                                                              \
		const struct alg *state = kept;                                                                        \
		const struct alg##_params *params = values;                                                            \
		(void)state;                                                                                           \
		(void)params;                                                                                          \
		(void)ack;                                                                                             \
		(void)reading;                                                                                         \
		ALG##_TRACK(TRACK_READING)                                                                             \
	}                                                                                                              \
	static void alg##_picture_any(const void *kept, struct picture_row *picture)                                   \
	{                                                                                                              \
		const struct alg *state = kept;                                                                        \
		u64 *bars = picture->bars;                                                                             \
		(void)state;                                                                                           \
		(void)bars;                                                                                            \
		ALG##_PICTURE(GAUGE_OF, BARS_OF, PHASE_OF)                                                             \
	}
ALGORITHMS(DEFINE_SHOWN)

#define COUNT(table) (sizeof(table) / sizeof((table)[0]) - 1)
#define ALGORITHM_ROW(alg, ALG, about, source)                                                                         \
	{ #alg,                                                                                                        \
	  ALG##_CONTROL,                                                                                               \
	  about,                                                                                                       \
	  source,                                                                                                      \
	  alg##_parameters,                                                                                            \
	  alg##_outcomes,                                                                                              \
	  alg##_exports,                                                                                               \
	  alg##_tracks,                                                                                                \
	  COUNT(alg##_parameters),                                                                                     \
	  OUTCOME_MAX,                                                                                                 \
	  COUNT(alg##_exports),                                                                                        \
	  COUNT(alg##_tracks),                                                                                         \
	  ALG##_TRAITS,                                                                                                \
	  alg##_state_size,                                                                                            \
	  sizeof(struct alg),                                                                                          \
	  0,                                                                                                           \
	  alg##_restart_any,                                                                                           \
	  alg##_on_ack_any,                                                                                            \
	  alg##_on_loss_any,                                                                                           \
	  alg##_track_any,                                                                                             \
	  alg##_picture_any },

const struct algorithm_row onramp_algorithms[] = { ALGORITHMS(ALGORITHM_ROW) };
const u32 onramp_algorithm_count = sizeof(onramp_algorithms) / sizeof(onramp_algorithms[0]);

#endif
