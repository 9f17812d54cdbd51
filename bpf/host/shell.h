/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A flow of the shell on the host. src/shell.c calls the entries (shell/entry.h) with it; the caller has the algorithm and the
 * base. No attachment expires here, and no consumer subscribes.
 */
#ifndef ONRAMP_HOST_SHELL_H
#define ONRAMP_HOST_SHELL_H

#include "view.h"
#include "../shell/entry.h"
#include "../shell/fast.h"
#include "../shell/start.h"
#include "../shell/startup.h"
#include "../shell/suss.h"

struct shell_flow {
	struct flow_header header; /* first: the shell's flow is it */
	struct limits limits;
	struct start start;	    /* from memory; over where there is none */
	struct fast fast;	    /* faster than doubling */
	struct suss suss;	    /* ... by SUSS */
	struct flow_telemetry kept; /* with what is observed */
	struct growth_step growth;  /* between the two parts of a growth of the window */
	u32 growth_limited;	    /* 1: by the last verdict; likewise */
	u32 traits;		    /* of the algorithm */
	u32 observing;		    /* 1: attached to observe */
	u32 has_state;		    /* 1: the flow has state */
	u32 faster;		    /* the one of enum start_policy that is faster than doubling; 0: none */
	u32 unused;
};

static inline struct shell shell_of(struct shell_flow *flow, struct sock *sk)
{
	return (struct shell){
		.sk = sk,
		.flow = &flow->header,
		.limits = &flow->limits,
		.kept = &flow->kept,
		.traits = flow->traits,
		.reads = READS_ALL,
		.observing = flow->observing,
	};
}

#endif
