/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Every algorithm, one row each: X(name, NAME, what it does, where it comes from), with TRAIT_EXTRA EXTRA(...). Its
 * shell is <name>.bpf.c.
 */
#ifndef ONRAMP_REGISTRY_H
#define ONRAMP_REGISTRY_H

#include "best.h"
#include "fixed.h"
#include "hystart.h"
#include "hystartpp.h"
#include "inflight.h"
#include "plain.h"
#include "ramp.h"
#include "search.h"
#include "spacing.h"
#include "threshold.h"

#define ALGORITHMS(X) ALGORITHMS_OF(X, X)
#define ALGORITHMS_OF(X, EXTRA)                                                                                        \
	X(plain, PLAIN, "slow start until loss, ECN or timeout", "RFC 5681")                                           \
	X(fixed, FIXED, "exits slow start at a given window", "Ataei Kachooei et al. 2022, figure 13")                 \
	X(best, BEST, "exits at the bandwidth-delay product that pairs of ACKs show", "Ataei Kachooei et al. 2022")    \
	X(hystart, HYSTART, "exits when ACK trains or delays say that the path is full, as Linux's CUBIC does",        \
	  "Ha and Rhee 2011; Linux tcp_cubic; Peters et al. 2021")                                                     \
	X(hystartpp, HYSTARTPP, "slows down when delays rise, and exits if they stay up", "RFC 9406")                  \
	EXTRA(search, SEARCH, "exits when deliveries stop keeping up with what was sent",                              \
	      "Chung et al. 2024; draft-chung-ccwg-search-09")                                                         \
	X(threshold, THRESHOLD, "lowers the threshold after loss to what a small buffer bears",                        \
	  "Barakat et al. 1999, first proposition")                                                                    \
	X(spacing, SPACING, "paces slow start at the rate of the bottleneck",                                          \
	  "Barakat et al. 1999, second proposition")                                                                   \
	X(inflight, INFLIGHT, "bounds the window by a running estimate of the BDP", "Gotta et al. 2006")               \
	X(ramp, RAMP, "exits when an estimate that fits every path says that the path is full",                        \
	  "docs/algorithms/ramp.md")

/* The algorithm that is used when none is named: it needs no knowledge of the path. */
#define DEFAULT_ALGORITHM ramp
/* The algorithm that decides slow starts of the kernel's own CUBIC, and exits on the same ACK. */
#define CUBIC_ALGORITHM hystart

#endif
