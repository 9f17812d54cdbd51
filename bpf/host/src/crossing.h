/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What Rust shares with the algorithms: their contract, their table, what is told of rounds, the guard, and thresholds that
 * a picture of a flow shows.
 */
#include "../../abi.h"
#include "../../algorithm/search.h"
#include "../../guard.h"
#include "rows.h"
