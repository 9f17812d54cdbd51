/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What is remembered of a path from one connection to the next, for starts from memory (resume.h): rate and minimum RTT, how
 * old they are, and how starts by them went.
 *
 *   - A connection that has left slow start has measured the rate: that replaces what was remembered. One that has not, or
 *     that its application or its receiver has held back, knows only that the path carries so much: that raises what is
 *     remembered, and lowers nothing that is fresh.
 *   - What is used of it is half. It is a quarter in the second half of its lifetime, half of that for each start in a row that
 *     was given up, and nothing after the lifetime (RFC 9959, sections 4.2 and 7).
 *   - Connections in parallel share one start: each claims the path, and while one has the claim the others start as without
 *     memory. The claim is given back when its start is over and when its socket is released. A claim that nobody gives back,
 *     because its code or its memory has gone, is void after ten RTTs, at least a second: so nothing has to clear it.
 *   - One that is made when a connection begins, which may never send much, is void after four RTTs, at least a second. It is
 *     extended to ten once the connection has more to send than an initial window, if no other has claimed the path by then.
 *
 * Pure functions; times are since boot, suspended time included.
 */
#ifndef ONRAMP_START_PATH_H
#define ONRAMP_START_PATH_H

#include "resume.h"

/* Paths that are remembered; then the one that was not used for longest is forgotten. */
#define PATHS_MAX 16384
/* What is learned is used for so long, unless an operator says otherwise (struct path_settings). */
#define PATH_LIFETIME_S 600
/* Initial windows that a connection has had acknowledged before it says anything of its path. */
#define PATH_WINDOWS_MIN 4
/* A claim is void after so many RTTs, within these. */
#define CLAIM_RTTS 10
#define CLAIM_NS_MIN 1000000000ULL
#define CLAIM_NS_MAX 60000000000ULL
/* ... and until there is more to send than an initial window, after so many. */
#define CLAIM_BEGIN_RTTS 4
/* Starts in a row that were given up count up to so many. */
#define RETREATS_MAX 16
/* Keeps products within 64 bits. */
#define PATH_DELIVERED_MAX (1U << 26)

/* Which path: of a network namespace to an address, or to all that share their first bits. */
struct path_key {
	u64 netns_cookie;
	u32 address[4]; /* network order; IPv4 as mapped into IPv6 */
};
_Static_assert(sizeof(struct path_key) == 24, "path_key is part of the ABI");

struct path {
	u64 rate;	   /* bytes per second; 0: nothing is remembered */
	u64 learned_ns;	   /* when; before boot it wraps, as a path does that was brought along from there */
	u64 claim_ends_ns; /* when the claim of a connection is void; 0: none has made one */
	u32 rtt_us;	   /* minimum */
	u32 confirmed;	   /* starts that went well, since the path was another */
	u32 retreated;	   /* starts that were given up, since the last that went well */
	u32 unused;
};
_Static_assert(sizeof(struct path) == 40, "path is part of the ABI");

/* What an operator sets of all paths. Masks have the bits of an address that say which path it is, in network order. */
struct path_settings {
	u64 lifetime_ns;
	u32 mask_ipv4;
	u32 mask_ipv6[4];
	u32 unused;
};
_Static_assert(sizeof(struct path_settings) == 32, "path_settings is part of the ABI");

/* What a connection has seen of its path. */
struct path_sample {
	u64 rate; /* bytes per second; 0: nothing */
	u32 rtt_us;
	u32 is_least; /* 1: the path may carry more */
};

/* Below 0: it was learned after the clock was read. */
static __always_inline s64 path_age_ns(const struct path *path, u64 now_ns)
{
	return (s64)(now_ns - path->learned_ns);
}

/* Whether what is remembered may be used. */
static __always_inline bool path_is_known(const struct path *path, u64 now_ns, u64 lifetime_ns)
{
	return path->rate && path->rtt_us && path_age_ns(path, now_ns) < (s64)lifetime_ns;
}

/* How long a claim holds. `begins`: its connection does. */
static __always_inline u64 claim_lasts_ns(const struct path *path, bool begins)
{
	u64 rtts = begins ? CLAIM_BEGIN_RTTS : CLAIM_RTTS;

	return max_u64(min_u64(path->rtt_us * rtts * 1000, CLAIM_NS_MAX), CLAIM_NS_MIN);
}

static __always_inline bool path_is_claimed(const struct path *path, u64 now_ns)
{
	return now_ns < path->claim_ends_ns;
}

/* The start of a connection over the path, which is known. */
static __always_inline void path_recall(const struct path *path, u64 now_ns, u64 lifetime_ns, u32 policies,
					struct start *start)
{
	start_remembers(start, path->rate, path->rtt_us, policies);
	start->halvings =
		(u16)((path_age_ns(path, now_ns) >= (s64)(lifetime_ns / 2)) + min_u64(path->retreated, RETREATS_MAX));
}

/* Remembers what a connection has seen. Whether that changes anything. */
static __always_inline bool path_learn(struct path *path, const struct path_sample *sample, u64 now_ns, u64 lifetime_ns)
{
	struct start before = { .rtt_us = path->rtt_us };

	if (!sample->rate || !sample->rtt_us)
		return false;
	if (sample->is_least && path_is_known(path, now_ns, lifetime_ns / 2) && path->rate >= sample->rate)
		return false;
	if (!start_knows_rtt(&before, sample->rtt_us))
		path->confirmed = path->retreated = 0;
	path->rate = sample->rate;
	path->rtt_us = sample->rtt_us;
	path->learned_ns = now_ns;
	return true;
}

/* Counts a start that is over. */
static __always_inline void path_judge(struct path *path, u32 end)
{
	if (end == START_VALIDATED) {
		path->confirmed += path->confirmed < ~0U;
		path->retreated = 0;
	} else if (end == START_RETREAT || end == START_CONGESTION) {
		path->retreated += path->retreated < ~0U;
	}
}

#endif
