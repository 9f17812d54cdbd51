/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What Rust shares with the algorithms: their contract, their table, what leaves a flow, the guard, and the shell.
 */
#include "../../guard.h"
#include "../../record.h"
#include "../shell.h"
#include "rows.h"
