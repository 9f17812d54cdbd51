/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What consumers get of flows: the subscriptions (struct telemetry), and the events in their ring buffers. Each
 * event begins with a struct event. Like abi.h, which this continues: fixed widths, no implicit padding, sizes
 * asserted.
 */
#ifndef ONRAMP_EVENTS_H
#define ONRAMP_EVENTS_H

#include "abi.h"

/* How much is reported; each level includes those before. */
enum telemetry_level {
	LEVEL_OFF = 0,
	LEVEL_EXIT = 1,	 /* flows beginning and ending, exits, exits undone */
	LEVEL_ROUND = 2, /* rounds, losses, congestion states, restarts */
	LEVEL_ACK = 3,	 /* every acknowledgment */
};

/* Consumers at once. */
#define CONSUMER_MAX 8

/*
 * One consumer. All but `lost` is written by user space, before it raises `registrations`. The lease process of a consumer
 * renews its lease; where that has run out, nothing is written for it.
 */
struct consumer {
	u64 id;		 /* 0: there is none */
	u64 lease_ns;	 /* monotonic time */
	u64 lost;	 /* events for which its ring had no room */
	u64 expired_ns;	 /* time that passed without a lease, until now */
	u64 prefix[2];	 /* of the remote address in the host's order, IPv4 mapped into IPv6; ... */
	u64 mask[2];	 /* ... 0: any */
	u32 pid;	 /* of the process that reads */
	u32 level;	 /* enum telemetry_level */
	u32 sampling;	 /* flows: one in this many, at least 1 */
	u32 ring_bytes;	 /* size of its ring */
	u32 wake_bytes;	 /* it is woken when so many wait, and for events of LEVEL_EXIT */
	u16 remote_port; /* 0: any */
	u16 local_port;	 /* 0: any */
	u8 name[16];	 /* what it is, NUL padded */
};
_Static_assert(sizeof(struct consumer) == 104, "consumer is part of the ABI");

/* All consumers; one for all algorithms. User space maps it into its memory, so every field changes atomically. */
struct telemetry {
	u64 wanted; /* byte i: levels that consumer i subscribes to, bit 0 for LEVEL_EXIT; 0: no consumer */
	u64 flows;  /* id of the next flow */
	u32 abi_version;
	u32 registrations; /* raised when a consumer comes or its subscription, parameters or a deadline change; never 0 */
	struct consumer consumers[CONSUMER_MAX];
};
_Static_assert(sizeof(struct telemetry) == 856, "telemetry is part of the ABI");

struct event {
	u16 version;	/* ABI_VERSION */
	u16 kind;	/* enum event_kind */
	u32 size;	/* bytes, of the whole event */
	u64 time_ns;	/* monotonic */
	u64 flow;	/* struct flow_telemetry.id */
	u64 lost;	/* struct consumer.lost of who reads this */
	u32 sequence;	/* of the flow; without a gap for a consumer that gets everything, all the time */
	u32 netns;	/* inode of the network namespace */
	u8 control[16]; /* name of the congestion control, NUL padded */
};
_Static_assert(sizeof(struct event) == 56, "event is part of the ABI");

/*
 * A flow has begun; or: it is in progress, and a consumer has come or changed its subscription, or its parameters have changed.
 * So it comes before every other event of a flow, and before the first ACK with the new parameters. The algorithm's
 * state follows.
 */
struct flow_payload {
	u32 local[4];	/* network order, IPv4 mapped into IPv6 */
	u32 remote[4];	/* likewise */
	u16 local_port; /* in the host's order */
	u16 remote_port;
	u32 again;	/* 1: not the flow's first event */
	u32 generation; /* of the parameters */
	u32 unused;
	u64 cookie; /* the kernel's id of the socket; 0: none yet */
	u64 netns_cookie;
};

struct flow_event {
	struct event event;
	struct flow_payload payload;
	u64 parameters[PARAMETER_MAX];
	struct flow_header header;
};
_Static_assert(sizeof(struct flow_event) == 56 + sizeof(struct flow_payload) + 128 + sizeof(struct flow_header),
	       "flow_event is part of the ABI");

/* The flow ended, or went to another control. */
struct end_event {
	struct event event;
	struct end_payload payload;
	struct flow_header header;
	u32 outcomes[OUTCOME_MAX]; /* as in struct flow_telemetry */
};
_Static_assert(sizeof(struct end_event) == 56 + sizeof(struct end_payload) + sizeof(struct flow_header) + 64,
	       "end_event is part of the ABI");

/* The first slow start is over and its record complete. */
struct exit_event {
	struct event event;
	struct exit_record record;
	struct exit_record observed; /* as in struct flow_telemetry */
};
_Static_assert(sizeof(struct exit_event) == 56 + 2 * sizeof(struct exit_record), "exit_event is part of the ABI");

/* A loss proved spurious. Of LEVEL_EXIT if it undoes an exit. */
struct undo_event {
	struct event event;
	struct undo_payload payload;
};
_Static_assert(sizeof(struct undo_event) == 56 + sizeof(struct undo_payload), "undo_event is part of the ABI");

/* A round is over. The algorithm's state follows. */
struct round_event {
	struct event event;
	struct round_payload payload;
};
_Static_assert(sizeof(struct round_event) == 56 + sizeof(struct round_payload), "round_event is part of the ABI");

/* The window is to be reduced: loss, ECN or timeout; which of them says the next EVENT_STATE. */
struct loss_event {
	struct event event;
	struct loss_payload payload;
};
_Static_assert(sizeof(struct loss_event) == 56 + sizeof(struct loss_payload), "loss_event is part of the ABI");

/* The congestion state (enum tcp_ca_state) changes. */
struct state_event {
	struct event event;
	struct state_payload payload;
};
_Static_assert(sizeof(struct state_event) == 56 + sizeof(struct state_payload), "state_event is part of the ABI");

/* Slow start begins, for the first time or anew; the algorithm is restarted. */
struct restart_event {
	struct event event;
	struct restart_payload payload;
};
_Static_assert(sizeof(struct restart_event) == 56 + sizeof(struct restart_payload), "restart_event is part of the ABI");

/* An acknowledgment, as given to the algorithm, and its answer. */
struct ack_event {
	struct event event;
	struct ack_payload payload;
};
_Static_assert(sizeof(struct ack_event) == 56 + sizeof(struct ack_payload), "ack_event is part of the ABI");

#endif
