/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the kernel and user space share of an attachment and its flows. What leaves a flow is in record.h, how it is
 * delivered in events.h. Fixed widths, no implicit padding, sizes asserted. The build makes Rust of it.
 */
#ifndef ONRAMP_ABI_H
#define ONRAMP_ABI_H

#include "record.h"

/* Parameter sets that one algorithm holds at once; set 0 is the default. */
#define PROFILE_MAX 16

/* Network namespaces whose previous default one algorithm records. */
#define NAMESPACES_MAX 1024

/* Parameters that an algorithm may declare. */
#define PARAMETER_MAX 16

/*
 * Parameters of one profile: two sets of values, of which one is active. The loader fills the other and then switches,
 * so a flow never reads a mixture.
 */
struct parameter_slot {
	u32 active;	   /* 0 or 1 */
	u32 generation;	   /* raised by every change of a parameter */
	u32 telemetry_max; /* enum telemetry_level: no consumer gets more of flows with these parameters */
	u32 unused;
	u64 sets[2][PARAMETER_MAX];
};
_Static_assert(sizeof(struct parameter_slot) == 272, "parameter_slot is part of the ABI");

/* A profile as rules name it: whose parameters, and which. */
struct profile_name {
	u8 control[16]; /* name of the congestion control, NUL padded */
	u8 profile[32]; /* as in struct attachment.profile_names; empty: none */
};
_Static_assert(sizeof(struct profile_name) == 48, "profile_name is part of the ABI");

/* Bits of struct flow_header.flags. */
enum flow_flag {
	FLOW_ADOPTED = 1 << 0,	       /* the connection had sent data before this control took it */
	FLOW_SLOW_START = 1 << 1,      /* the window was below the threshold at the last ACK */
	FLOW_EXITING = 1 << 2,	       /* detected, but the window is still being drained */
	FLOW_RECORDED = 1 << 3,	       /* with FLOW_REDUCED: the exit record is of that event */
	FLOW_STARTED = 1 << 4,	       /* the first ACK of data has been seen */
	FLOW_REDUCED = 1 << 5,	       /* slow start ended by the last event, which may yet prove spurious */
	FLOW_UNNAMED = 1 << 6,	       /* that event's name comes with the next congestion states */
	FLOW_SSTHRESH_SET = 1 << 7,    /* the threshold ahead was set by the algorithm */
	FLOW_STARTS = 1 << 8,	       /* a start from memory is in progress */
	FLOW_EXIT_UNREPORTED = 1 << 9, /* the exit record is complete and not yet reported */
	FLOW_OBSERVED = 1 << 10,       /* attached to observe: the algorithm would have left this slow start */
	FLOW_FASTER = 1 << 11,	       /* a start without memory that is faster than doubling is in progress */
};

/* the current round (algorithm/round.h). */
struct round {
	u64 start_us;	     /* 0: no round has begun, because no consumer gets rounds */
	u32 start_bytes;     /* acknowledged then, modulo 2^32 */
	u32 end;	     /* round_end */
	u32 start_delivered; /* segments */
	u32 min_rtt_us;	     /* of the round's samples; all ones: none */
	u32 acks;
	u32 number; /* from 0 */
	u32 cwnd_limited_us;
	u32 last_us; /* newest ACK, modulo 2^32 */
};
_Static_assert(sizeof(struct round) == 40, "round is part of the ABI");

/*
 * First part of a flow's socket storage; the algorithm's own state follows. It is made at the first ACK in slow start
 * that finds more given to send, so far, than INITIAL_WINDOW segments, or when a flow is taken over that has sent more.
 */
struct flow_header {
	u64 start_us; /* monotonic time at which the data was sent that the first ACK in slow start acknowledged */
	struct exit_record exit;
	u32 generation;	 /* of the parameters seen last */
	u32 undo_limit;	 /* of the last verdict */
	u16 flags;	 /* enum flow_flag */
	u16 slow_starts; /* times slow start was entered; 65535: or more */
	u16 profile;	 /* parameter set of this flow */
	u16 unused;
};
_Static_assert(sizeof(struct flow_header) == 24 + sizeof(struct exit_record), "flow_header is part of the ABI");

/*
 * What is also kept of a flow once a consumer subscribes to it, or where its control is attached to observe; in socket
 * storage of its own.
 */
struct flow_telemetry {
	u64 id;			 /* of this flow in events; 0: none yet */
	u64 interest;		 /* levels that consumers get of it, see struct telemetry.wanted */
	u32 registrations;	 /* struct telemetry.registrations when that was decided */
	u32 reported_generation; /* of the parameters reported to consumers last */
	u32 sequence;		 /* events so far */
	u32 netns;		 /* inode of the network namespace; set with the id */
	struct round round;
	/*
	 * Attached to observe: where the algorithm would have left. `window_after` is the threshold that it wants, also
	 * before it is reached; 0: none.
	 */
	struct exit_record observed;
	u32 outcomes[OUTCOME_MAX]; /* verdicts by name, since this was made */
};
_Static_assert(sizeof(struct flow_telemetry) == 136 + sizeof(struct exit_record), "flow_telemetry is part of the ABI");

/*
 * What a control has seen since it was attached; one copy per processor. Every connection is counted: flows.started is
 * those that have the control now, flows.without_state and all exits.
 */
struct counters {
	struct flow_counts flows;
	u64 exits[8];			/* ended with state, by enum exit_reason; EXIT_NONE: ended in slow start */
	u64 outcomes[OUTCOME_MAX];	/* verdicts by name */
	u64 profile_flows[PROFILE_MAX]; /* in progress with this parameter set, as the sum of all copies; of set 0: 0 */
};
_Static_assert(sizeof(struct counters) == 360, "counters is part of the ABI");

/* Base that does congestion avoidance, loss reaction and undo. */
enum base { BASE_RENO = 0, BASE_CUBIC = 1, BASE_BBR = 2 };

/* Bits of struct attachment.flags. */
enum attachment_flag {
	ATTACHMENT_OBSERVES = 1 << 0, /* nothing that the algorithm wants is done, only recorded */
	ATTACHMENT_TRIPPED = 1 << 1,  /* set by the kernel: the guard has found harm, and the base runs alone */
	ATTACHMENT_GUARDED = 1 << 2,  /* it has a guard, which is pinned */
};

/* From this bit of struct attachment.flags on: enum after_exit, a bit each. */
#define ATTACHMENT_AFTER_EXIT_SHIFT 8
/* ... and from this bit on: enum start_policy, a bit each. */
#define ATTACHMENT_START_SHIFT 16

/*
 * What was attached, written by the loader, which later only lifts the deadline. Everything up to the version of onramp
 * stays where it is in every ABI, so that each onramp can say what another one has attached.
 */
struct attachment {
	u32 abi_version;
	u32 base;	  /* enum base */
	u64 generation;	  /* id of this attachment */
	u64 attached_ns;  /* since boot, suspended time included */
	u64 deadline_ns;  /* since boot, suspended time included: past it the base runs alone; 0: never */
	u32 owner_pid;	  /* of a scoped run; 0: stays until detached */
	u32 profiles;	  /* no parameter set from this number on is in use */
	u32 flags;	  /* enum attachment_flag, and enum after_exit and start_policy from their shifts on */
	u32 tables_crc32; /* of the algorithm's parameters, outcomes and exports; events identify them by position */
	u8 version[16];	  /* of onramp, NUL padded */
	u8 profile_names[PROFILE_MAX][32]; /* by the number of the parameter set, NUL padded; empty: it is free */
};
_Static_assert(sizeof(struct attachment) == 576, "attachment is part of the ABI");

/* What a network namespace's default was before this control became it; key: the namespace's cookie. */
struct default_before {
	u8 name[16];
};

#endif
