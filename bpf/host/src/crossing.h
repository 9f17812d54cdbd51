/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What Rust shares with the algorithms: their contract, their table, what is told of rounds, and the guard. */
#include "../../abi.h"
#include "../../guard.h"
#include "rows.h"
