/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Every algorithm, one row each: X(name, NAME, what it does, where it comes from). Its shell is <name>.bpf.c.
 */
#ifndef ONRAMP_REGISTRY_H
#define ONRAMP_REGISTRY_H

#include "fixed.h"
#include "plain.h"
#include "search.h"

#define ALGORITHMS(X)                                                                                                  \
	X(plain, PLAIN, "slow start until loss, ECN or timeout", "RFC 5681")                                           \
	X(fixed, FIXED, "leaves slow start at a given window", "document 000, figure 13")                              \
	X(search, SEARCH, "leaves when deliveries stop keeping up with what was sent",                                 \
	  "document 003; draft-chung-ccwg-search-09")

#endif
