/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What Rust shares with the algorithms: their contract, their table, and what is told of rounds. */
#include "../../abi.h"
#include "rows.h"
