/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What an entry works on, and what it reports to consumers of telemetry: kernel/observe.bpf.h emits that, host/view.h does
 * nothing.
 */
#ifndef ONRAMP_SHELL_REPORT_H
#define ONRAMP_SHELL_REPORT_H

#include "../abi.h"
#include "limits.h"

struct sock;

struct shell {
	struct sock *sk;
	struct flow_header *flow;
	struct limits *limits;
	struct flow_telemetry *telemetry; /* null: no consumer has subscribed to the flow */
	struct flow_telemetry *kept;	  /* with what is observed; the same, unless attached to observe */
	u32 traits;			  /* of the algorithm */
	u32 reads;			  /* fields of an ACK: NAME_READS */
	bool observing;			  /* attached to observe */
};

/* Slow start begins with an ACK, which the algorithm has not seen yet. */
static __always_inline void report_restart(const struct shell *shell);
/* An ACK, once its verdict has been applied. */
static __always_inline void report_ack(const struct shell *shell, struct ack_payload *payload);
static __always_inline void report_loss(const struct shell *shell, const struct loss_payload *payload);
static __always_inline void report_state(const struct shell *shell, u32 from, u32 to);
static __always_inline void report_undo(const struct shell *shell, struct undo_payload *payload);
/* The exit record, complete and with its name. */
static __always_inline void report_exit(const struct shell *shell);

#endif
