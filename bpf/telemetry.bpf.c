/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Makes the maps that all algorithms and all consumers share; no program. */
#include "kernel/telemetry.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* No map holds an event: only so does the type information have them, which a test compares with Rust's. */
const union {
	struct flow_event flow;
	struct end_event end;
	struct exit_event exit;
	struct undo_event undo;
	struct round_event round;
	struct loss_event loss;
	struct state_event state;
	struct restart_event restart;
	struct ack_event ack;
} *const events = 0;
