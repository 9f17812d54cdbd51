/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * search: Slow start Exit At Right CHokepoint.
 *
 * While slow start is clocked by ACKs, what is delivered doubles every round trip. Once the bottleneck is full it stops
 * doubling, whatever the RTT does: deliveries fall behind what was sent one round trip earlier. SEARCH counts bytes in
 * bins of 0.35 initial RTTs and compares, over a window of ten bins (3.5 RTTs, longer than the RTT swings of scheduled
 * links), what is delivered now (D) with what was sent one round trip ago (E), or with twice what was delivered then:
 *
 *	norm = (E - D) / E        0 while doubling, towards 0.5 long after saturation; leave at the threshold
 *
 *	             ACK past the end of a bin             norm >= threshold
 *	counting ─────────────────────────────► compared ────────────────────► exit: hold | rollback | drain
 *	   ▲    ◄─────────────────────────────────┘ below
 *	   └── restart: timeout, idle restart, silence (missed_bins), application limited (app_limited)
 *
 * Source: Chung et al. 2024 (delivered form, "2.0") and draft-chung-ccwg-search-09 (sent form). What differs from them:
 *
 *  1. Look-back is interpolated backwards, between the bins p-1 and p. The draft interpolates towards p+1, which looks
 *     back too little and leaves on a clean ramp.
 *  2. A check needs a predecessor of its oldest bin (p >= 11), so no absolute byte count enters a window after a
 *     re-initialisation in mid-connection.
 *  3. Bins are cumulative counters modulo 2^32, compared by difference: no scaling, no loss of resolution, rollback
 *     and drain computed in bytes.
 *  4. Time is 64 bits wide and the work per ACK is bounded by the rings, however long the silence before it.
 *  5. A bin lasts at least 1 us, so an RTT near 0 divides by nothing.
 *  6. Sent bytes do not count retransmissions, which acknowledged bytes do not count either.
 *  7. Form and bin geometry are latched when slow start begins: a change of parameters in mid-flow never reinterprets
 *     what the bins hold.
 *  8. The drain's target is at most the window that detection saw, no step of it raises the window, every ACK counts
 *     towards it, with an RTT sample or without, and what remains of a drain ends with slow start: a loss in between is
 *     left to the base, and if the loss proves spurious the window comes back to the target at most.
 *  9. The latest RTT is taken for no less than the smoothed one, so that a single low sample (a hand-over between
 *     satellites) does not shorten the look-back and leave on a clean ramp.
 * 10. Hold is the default exit: the window stays as it is, where the draft drains and Chung et al. 2024 may roll back.
 * 11. The threshold may have to hold for several checks in a row (confirm_bins: 2 unless set, 1 as published).
 *     Slow start sends each round in one burst, and where ACKs come jittered, bins cut bursts unevenly: single checks
 *     then show a lag that the next one does not. Saturation stays.
 * 12. Besides fractions of a bin, the look-back may go to the older edge of the bin it falls in (interpolate=older). A
 *     fraction counts part of a burst as sent of which nothing can have been acknowledged yet; the older edge never
 *     does, at the price of up to one bin.
 * 13. Where the application limits the sender, bins start anew unless a parameter says otherwise. What is sent while no ACK comes is
 *     counted in the bin that the next ACK closes, so after a pause the older edge of the expectation is too low, and a
 *     check sees a lag that is none. In the delivered form, to which a think time is a fall, freeze starts anew, too.
 */
#ifndef ONRAMP_SEARCH_H
#define ONRAMP_SEARCH_H

#include "ack_pairs.h"
#include "algorithm.h"
#include "pacing.h"

/* Bins in a window (Chung et al. 2024: W). */
#define SEARCH_WINDOW 10
/*
 * Bins remembered; powers of two, which the kernel's verifier understands. `expected` holds what is looked back at, where
 * draft-09 keeps 25 bins; `acked` only the current window.
 */
#define SEARCH_EXPECTED_BINS 32
#define SEARCH_ACKED_BINS 16
/* Longest look-back in bins: it must fit the ring with the window, its predecessor and the bin interpolated with. */
#define SEARCH_LOOK_BACK_MAX (SEARCH_EXPECTED_BINS - SEARCH_WINDOW - 2)
/* Thresholds of the two forms, percent: draft-09 and Chung et al. 2024. */
#define SEARCH_SENT_THRESHOLD 26
#define SEARCH_DELIVERED_THRESHOLD 35
/* Segments acknowledged for each that a drain lets out (draft-09's authors: SEARCH_DRAIN_ACKEDSEG_THRESH). */
#define SEARCH_DRAIN_RATIO 3
/* As many checks at the threshold in a row are counted; confirm_bins is less. */
#define SEARCH_CONFIRMED_MAX 255
/* `index` before the first bin. */
#define SEARCH_NO_INDEX 0xffffffffU

enum search_form { SEARCH_DELIVERED, SEARCH_SENT };
enum search_look_back { SEARCH_LATEST, SEARCH_SMOOTHED, SEARCH_MINIMUM };
enum search_interpolate { SEARCH_NEWER, SEARCH_FRACTION, SEARCH_OLDER };
enum search_missed_bins { SEARCH_MISSED_OFF, SEARCH_MISSED_ALPHA, SEARCH_MISSED_WINDOW };
enum search_app_limited { SEARCH_APP_OFF, SEARCH_APP_RESET, SEARCH_APP_FREEZE, SEARCH_APP_RATE };
enum search_exit_action { SEARCH_HOLD, SEARCH_ROLLBACK, SEARCH_DRAIN };

#define SEARCH_CONTROL "onramp_search"
#define SEARCH_PARAMETERS(X)                                                                                           \
	X(form, "", SEARCH_SENT, 0, 1, "delivered|sent",                                                               \
	  "what deliveries are compared with: twice the deliveries, or the bytes sent, one RTT ago; latched at start") \
	X(threshold_pct, "percent", 0, 0, 100, "",                                                                     \
	  "norm at which slow start is exited; 0: what the form's source says, 26 for sent, 35 for delivered")         \
	X(confirm_bins, "bins", 2, 1, 10, "", "consecutive checks at the threshold before the exit")                   \
	X(window_factor_pct, "percent", 350, 200, 1000, "",                                                            \
	  "length of the ten-bin window in initial RTTs; latched at start")                                            \
	X(interpolate, "", SEARCH_FRACTION, 0, 2, "off|on|older",                                                      \
	  "look back by whole bins, by fractions, or by whole bins to the edge further back")                          \
	X(look_back, "", SEARCH_LATEST, 0, 2, "latest|smoothed|min",                                                   \
	  "which RTT the look-back spans: the latest, or the smoothed if that is longer; the smoothed; the minimum")   \
	X(missed_bins, "", SEARCH_MISSED_WINDOW, 0, 2, "off|alpha|window",                                             \
	  "start anew after a silence: never, after missed_bins_rtts, after a whole window")                           \
	X(missed_bins_rtts, "initial RTTs", 2, 1, 1000, "",                                                            \
	  "silence that missed_bins=alpha bears (the source: alpha)")                                                  \
	X(app_limited, "", SEARCH_APP_RESET, 0, 3, "off|reset|freeze|rate",                                            \
	  "when the application limits the sender: ignore, start anew, do not evaluate, start anew by rate sample; "   \
	  "form=delivered starts anew in place of freeze")                                                             \
	X(exit_action, "", SEARCH_HOLD, 0, 2, "hold|rollback|drain",                                                   \
	  "keep the window, reduce it by two initial RTTs' deliveries, or shrink to one initial RTT's deliveries")     \
	PACING_PARAMETERS(X)                                                                                           \
	X(pacing_min_rate_bytes_per_s, "bytes/s", 1000000, 0, 17179869184, "",                                         \
	  "rate that a round must exceed to be one")

enum search_outcome {
	SEARCH_BIN_OPEN = OUTCOME_OWN,
	SEARCH_BINS_MISSED,
	SEARCH_LOOK_BACK_TOO_LONG,
	SEARCH_NOTHING_SENT,
	SEARCH_DRAINING,
	SEARCH_UNCONFIRMED,
};

#define SEARCH_OUTCOMES(X)                                                                                             \
	X(SEARCH_BIN_OPEN, bin_open, "the current bin is not over")                                                    \
	X(SEARCH_BINS_MISSED, bins_missed, "a silence too long for the history: started anew")                         \
	X(SEARCH_LOOK_BACK_TOO_LONG, look_back_too_long, "the RTT reaches back further than the bins")                 \
	X(SEARCH_NOTHING_SENT, nothing_sent, "nothing to compare with in the earlier window")                          \
	X(SEARCH_DRAINING, draining, "the exit's drain is in progress")                                                \
	X(SEARCH_UNCONFIRMED, unconfirmed, "at the threshold, to be confirmed by the next bin")

struct search {
	u64 bin_end_us;
	u32 bin_us;	       /* 0: geometry not set */
	u32 index;	       /* newest bin, SEARCH_NO_INDEX: none */
	u32 first_rtt_us;      /* kept over restarts */
	u32 second_rtt_us;     /* kept over restarts */
	u32 norm_pct;	       /* of the newest check */
	u32 norm_max_pct;      /* of all checks that did not leave */
	u32 look_back_bins;    /* of the newest check */
	u32 look_back_needed;  /* longest that was too long to check */
	u32 passed_bins_max;   /* longest silence that started anew */
	u32 target;	       /* of the drain, segments; 0: not draining */
	u32 drain_delivered;   /* delivered, as far as the drain has let segments out for it */
	u16 window_factor_pct; /* latched */
	u8 form;	       /* latched */
	u8 confirmed_bins;     /* checks in a row that were at the threshold */
	u32 acked[SEARCH_ACKED_BINS];
	u32 expected[SEARCH_EXPECTED_BINS];
};

/* With pacing on. */
struct search_extra {
	struct ack_pairs pairs;
	struct pacing pacing;
};

_Static_assert(sizeof(struct search) <= 256, "the state of a flow grows");
_Static_assert(sizeof(struct search_extra) <= 144, "the state of a flow with pacing on grows");

#define SEARCH_EXPORTS(X)                                                                                              \
	X(search, norm_pct, "percent", 1, "norm of the newest check")                                                  \
	X(search, norm_max_pct, "percent", 1, "largest norm below the threshold")                                      \
	X(search, index, "bins", 1, "newest bin since slow start began")                                               \
	X(search, bin_us, "us", 1, "length of a bin")                                                                  \
	X(search, look_back_bins, "bins", 1, "look-back of the newest check")                                          \
	X(search, look_back_needed, "bins", 1, "longest look-back that did not fit the history")                       \
	X(search, passed_bins_max, "bins", 1, "longest silence that started the history anew")                         \
	X(search, first_rtt_us, "us", 1, "first RTT sample")                                                           \
	X(search, second_rtt_us, "us", 1, "second RTT sample")                                                         \
	X(search, target, "segments", 1, "window that a drain is heading for")                                         \
	X(search, acked, "bytes", SEARCH_ACKED_BINS, "cumulative bytes acknowledged, ring by bin")                     \
	X(search, expected, "bytes", SEARCH_EXPECTED_BINS, "cumulative bytes to compare with, ring by bin")

#define SEARCH_TRACK(X) X("norm", "percent", state->norm_pct, "threshold", search_threshold_now(state, params))
#define SEARCH_PICTURE(GAUGE, BARS, PHASE)                                                                             \
	GAUGE("norm", state->norm_max_pct) BARS("acked per bin", "bytes", search_bars(state, bars))

#define SEARCH_TRAITS (TRAIT_LIMITS_GROWTH | TRAIT_PACES | TRAIT_EXTRA | TRAIT_SLEEPS)
#define SEARCH_READS                                                                                                   \
	(ACK_PAIRS_READS | PACING_READS | READS(bytes_sent) | READS(delivered) | READS(smoothed_rtt_us) |              \
	 READS(in_flight))

struct search_params {
	SEARCH_PARAMETERS(PARAMETER_FIELD)
};

static __always_inline u32 search_acked(const struct search *state, u32 bin)
{
	return state->acked[bin % SEARCH_ACKED_BINS];
}

static __always_inline u32 search_expected(const struct search *state, u32 bin)
{
	return state->expected[bin % SEARCH_EXPECTED_BINS];
}

/* Bytes acknowledged in the newest `bins` bins, at most SEARCH_WINDOW. */
static __always_inline u32 search_delivered(const struct search *state, u32 bins)
{
	return search_acked(state, state->index) - search_acked(state, state->index - bins);
}

/* The history is void, what was seen of the path so far is not. */
static __always_inline void search_forget(struct search *state)
{
	state->bin_us = 0;
	state->index = SEARCH_NO_INDEX;
	state->confirmed_bins = 0;
	state->target = 0;
}

/* Slow start begins anew. */
static __always_inline void search_restart(struct search *state)
{
	search_forget(state);
}

static __always_inline bool search_wants_extra(const struct search_params *params)
{
	return params->pacing;
}

/* What spacing knows begins anew, too. */
static __always_inline void search_restart_extra(struct search_extra *extra)
{
	ack_pairs_restart(&extra->pairs);
	pacing_restart(&extra->pacing);
}

/* The reaction to loss is the base's; a drain is over with it. */
static __always_inline u32 search_on_loss(struct search *state, const struct search_params *params,
					  const struct ack *ack, u32 base_ssthresh)
{
	(void)params;
	(void)ack;
	state->target = 0;
	return base_ssthresh;
}

static __always_inline void search_put(struct search *state, u32 bin, u32 acked, u32 expected)
{
	state->acked[bin % SEARCH_ACKED_BINS] = acked;
	state->expected[bin % SEARCH_EXPECTED_BINS] = expected;
}

/* The newest bin ends with this ACK. */
static __always_inline void search_store(struct search *state, const struct ack *ack)
{
	u64 expected = state->form == SEARCH_SENT ? ack->bytes_sent : ack->bytes_acked;

	search_put(state, state->index, (u32)ack->bytes_acked, (u32)expected);
}

/* Opens the first bin; the geometry is kept where it is set (Chung et al. 2024: initialization). */
static __always_inline void search_begin(struct search *state, const struct search_params *params,
					 const struct ack *ack, u32 rtt_us)
{
	if (!state->bin_us) {
		state->window_factor_pct = (u16)params->window_factor_pct;
		state->form = (u8)params->form;
		state->bin_us = (u32)max_u64((u64)rtt_us * state->window_factor_pct / (100 * SEARCH_WINDOW), 1);
	}
	state->bin_end_us = ack->now_us + state->bin_us;
	state->index = 0;
	state->confirmed_bins = 0;
	search_store(state, ack);
}

/* Closes `passed` bins at once: the skipped ones repeat the last, which is all that happened in them. */
static __always_inline void search_advance(struct search *state, const struct ack *ack, u64 passed)
{
	u32 steps = (u32)min_u64(passed, SEARCH_EXPECTED_BINS);
	u32 acked = search_acked(state, state->index);
	u32 expected = search_expected(state, state->index);

	for (u32 i = 1; i < SEARCH_EXPECTED_BINS; i++) {
		if (i >= steps)
			break;
		search_put(state, state->index + i, acked, expected);
	}
	state->index += steps;
	state->bin_end_us += passed * state->bin_us;
	search_store(state, ack);
}

/* Bytes in the ten bins that end at position p - fraction_pct/100, in the expected ring. */
static __always_inline u64 search_window(const struct search *state, u32 p, u32 fraction_pct)
{
	u32 earlier = search_expected(state, p - 1) - search_expected(state, p - 1 - SEARCH_WINDOW);
	u32 later = search_expected(state, p) - search_expected(state, p - SEARCH_WINDOW);

	return ((u64)earlier * fraction_pct + (u64)later * (100 - fraction_pct)) / 100;
}

static __always_inline u32 search_look_back_rtt(const struct search_params *params, const struct ack *ack, u32 rtt_us)
{
	if (params->look_back == SEARCH_MINIMUM && ack->min_rtt_us)
		return ack->min_rtt_us;
	if (params->look_back == SEARCH_SMOOTHED && ack->smoothed_rtt_us)
		return ack->smoothed_rtt_us;
	if (params->look_back == SEARCH_LATEST && ack->smoothed_rtt_us > rtt_us)
		return ack->smoothed_rtt_us;
	return rtt_us;
}

static __always_inline u32 search_threshold(u32 form, const struct search_params *params)
{
	if (params->threshold_pct)
		return (u32)params->threshold_pct;
	return form == SEARCH_SENT ? SEARCH_SENT_THRESHOLD : SEARCH_DELIVERED_THRESHOLD;
}

/* The threshold in force, also before the form is latched. */
static __always_inline u32 search_threshold_now(const struct search *state, const struct search_params *params)
{
	return search_threshold(state->bin_us ? state->form : (u32)params->form, params);
}

/* Bytes acknowledged in each bin that is remembered, from the oldest on; returns their number. */
static __always_inline u32 search_bars(const struct search *state, u64 *bars)
{
	u32 newest = state->index == SEARCH_NO_INDEX ? 0 : state->index;
	u32 count = (u32)min_u64(newest, SEARCH_ACKED_BINS - 1);

	for (u32 i = 0; i < count; i++) {
		u32 bin = newest - count + i;

		bars[i] = search_acked(state, bin + 1) - search_acked(state, bin);
	}
	return count;
}

/*
 * Compares deliveries with the expectation (Chung et al. 2024: ack_arrival). Returns the outcome: OUTCOME_EXIT, or why
 * not.
 */
static __always_inline u32 search_evaluate(struct search *state, const struct search_params *params,
					   const struct ack *ack, u32 rtt_us)
{
	u32 look_back_us = search_look_back_rtt(params, ack, rtt_us);
	u32 bin_us = state->bin_us ? state->bin_us : 1;
	u32 look_back = look_back_us / bin_us;
	u32 fraction_pct = 0;
	u64 expected, delivered;

	state->look_back_bins = look_back;
	if (look_back > SEARCH_LOOK_BACK_MAX) {
		if (look_back > state->look_back_needed)
			state->look_back_needed = look_back;
		return SEARCH_LOOK_BACK_TOO_LONG;
	}
	if (state->index < look_back + SEARCH_WINDOW + 1)
		return OUTCOME_WARMING_UP;
	if (params->interpolate == SEARCH_OLDER)
		fraction_pct = 100;
	else if (params->interpolate == SEARCH_FRACTION)
		fraction_pct = (u32)((u64)(look_back_us % bin_us) * 100 / bin_us);

	expected = search_window(state, state->index - look_back, fraction_pct);
	if (state->form == SEARCH_DELIVERED)
		expected *= 2;
	if (!expected)
		return SEARCH_NOTHING_SENT;
	delivered = search_delivered(state, SEARCH_WINDOW);
	state->norm_pct = delivered < expected ? (u32)((expected - delivered) * 100 / expected) : 0;
	if (state->norm_pct >= search_threshold(state->form, params)) {
		state->confirmed_bins = (u8)min_u64(state->confirmed_bins + 1ULL, SEARCH_CONFIRMED_MAX);
		if (state->confirmed_bins >= params->confirm_bins)
			return OUTCOME_EXIT;
		return SEARCH_UNCONFIRMED;
	}
	state->confirmed_bins = 0;
	if (state->norm_pct > state->norm_max_pct)
		state->norm_max_pct = state->norm_pct;
	return OUTCOME_BELOW_THRESHOLD;
}

/* Bins that cover `rtts` initial RTTs (of 1000/window_factor_pct bins each), rounded down or up, within the window. */
static __always_inline u32 search_rtt_bins(const struct search *state, u32 rtts, bool up)
{
	u32 factor = state->window_factor_pct ? state->window_factor_pct : 1;
	u32 bins = (rtts * 100 * SEARCH_WINDOW + (up ? factor - 1 : 0)) / factor;

	return bins > SEARCH_WINDOW ? SEARCH_WINDOW : bins;
}

static __always_inline void search_exit(struct search *state, const struct search_params *params, const struct ack *ack,
					struct verdict *verdict)
{
	u32 mss = ack_mss(ack);
	u32 reduced_by, target;

	if (params->exit_action == SEARCH_DRAIN) {
		target = search_delivered(state, search_rtt_bins(state, 1, true)) / mss;
		target = (u32)max_u64(target, INITIAL_WINDOW);
		state->target = (u32)min_u64(target, ack->cwnd);
		state->drain_delivered = ack->delivered;
		verdict->growth = GROWTH_LIMITED;
		verdict->undo_limit = state->target;
		return;
	}
	verdict->ssthresh = ack->cwnd;
	if (params->exit_action == SEARCH_ROLLBACK) {
		reduced_by = search_delivered(state, search_rtt_bins(state, 2, false)) / mss;
		target = reduced_by < ack->cwnd ? ack->cwnd - reduced_by : 0;
		target = (u32)max_u64(target, INITIAL_WINDOW);
		verdict->cwnd = (u32)min_u64(target, ack->cwnd);
		verdict->ssthresh = verdict->cwnd;
	}
}

/* Lets one segment out for SEARCH_DRAIN_RATIO acknowledged until what is in flight fits the target (draft-09, 3.2). */
static __always_inline void search_drain(struct search *state, const struct ack *ack, struct verdict *verdict)
{
	u32 let_out = (ack->delivered - state->drain_delivered) / SEARCH_DRAIN_RATIO;
	u32 window = (u32)min_u64((u64)ack->in_flight + let_out, ack->cwnd);

	state->drain_delivered += let_out * SEARCH_DRAIN_RATIO;
	verdict->outcome = SEARCH_DRAINING;
	if (window <= state->target) {
		verdict->cwnd = (u32)min_u64(state->target, ack->cwnd);
		verdict->ssthresh = verdict->cwnd;
		state->target = 0;
		return;
	}
	verdict->cwnd = window;
	verdict->growth = GROWTH_LIMITED;
	verdict->undo_limit = state->target;
}

/* Whether the application's lack of data makes this boundary unfit for an evaluation. */
static __always_inline bool search_app_limits(const struct search_params *params, const struct ack *ack)
{
	if (params->app_limited == SEARCH_APP_RATE)
		return ack->flags & ACK_RATE_APP_LIMITED;
	return params->app_limited != SEARCH_APP_OFF && ack->flags & ACK_APP_LIMITED;
}

/* Spaces what the ACK releases. */
static __always_inline void search_on_ack_extra(struct search_extra *extra, const struct search_params *params,
						const struct ack *ack, struct verdict *verdict)
{
	u32 news = ack_pairs_on_ack(&extra->pairs, ack);

	if (news)
		pacing_round(&extra->pacing, ack_pairs_rate(&extra->pairs), extra->pairs.result == ACK_PAIRS_SETTLED,
			     news == ACK_PAIRS_OVER, params->pacing_min_rate_bytes_per_s);
	verdict->pacing_rate = pacing_rate(&extra->pacing, params->pacing_gain_pct, ack);
}

static __always_inline void search_on_ack(struct search *state, const struct search_params *params,
					  const struct ack *ack, struct verdict *verdict)
{
	u32 rtt_us;
	u64 passed;

	if (state->target) {
		search_drain(state, ack, verdict);
		return;
	}
	if (ack->rtt_us < 0) {
		verdict->outcome = OUTCOME_NO_RTT_SAMPLE;
		return;
	}
	rtt_us = ack->rtt_us ? (u32)ack->rtt_us : 1;
	if (!state->second_rtt_us) {
		if (state->first_rtt_us)
			state->second_rtt_us = rtt_us;
		else
			state->first_rtt_us = rtt_us;
	}

	if (state->index == SEARCH_NO_INDEX) {
		search_begin(state, params, ack, rtt_us);
		verdict->outcome = OUTCOME_WARMING_UP;
		return;
	}
	if ((s64)(ack->now_us - state->bin_end_us) <= 0) {
		verdict->outcome = SEARCH_BIN_OPEN;
		return;
	}
	if (search_app_limits(params, ack)) {
		verdict->outcome = OUTCOME_APP_LIMITED;
		if (params->app_limited != SEARCH_APP_FREEZE || state->form == SEARCH_DELIVERED)
			search_begin(state, params, ack, rtt_us);
		return;
	}

	passed = (ack->now_us - state->bin_end_us) / (state->bin_us ? state->bin_us : 1) + 1;
	if ((params->missed_bins == SEARCH_MISSED_WINDOW && passed > SEARCH_WINDOW) ||
	    (params->missed_bins == SEARCH_MISSED_ALPHA &&
	     passed > params->missed_bins_rtts * search_rtt_bins(state, 1, false))) {
		verdict->outcome = SEARCH_BINS_MISSED;
		state->passed_bins_max = (u32)max_u64(state->passed_bins_max, min_u64(passed, 0xffffffffU));
		if (passed > SEARCH_WINDOW)
			search_forget(state);
		if (params->missed_bins == SEARCH_MISSED_ALPHA)
			search_begin(state, params, ack, rtt_us);
		return;
	}

	search_advance(state, ack, passed);
	verdict->outcome = search_evaluate(state, params, ack, rtt_us);
	if (verdict->outcome == OUTCOME_EXIT)
		search_exit(state, params, ack, verdict);
}

/* To the end of the bin. Pacing takes every ACK. */
static __always_inline u64 search_sleeps_until(const struct search *state, const struct search_params *params,
					       const struct verdict *verdict)
{
	return verdict->outcome == SEARCH_BIN_OPEN && !params->pacing ? state->bin_end_us + 1 : 0;
}

#endif
