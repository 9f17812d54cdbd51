/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What consumers are told of a flow, event by event (events.h). Included by congestion_ops.bpf.h, which knows the
 * algorithm: `struct flow` and the map of parameters must be declared before.
 *
 * The functions that write into rings are global, so the verifier looks at each of them once, and not again from every
 * place and in every state that they are called from. It knows nothing of their arguments then but the size: what is
 * read of the socket comes as a struct.
 */
#ifndef ONRAMP_EVENTS_BPF_H
#define ONRAMP_EVENTS_BPF_H

#include "telemetry.bpf.h"
#include "window.bpf.h"

static const char control[16] = PASTE(ALGORITHM_UPPER, CONTROL);

/* Defines tell_<name>(flow, told), which sends a struct <name>_told. */
#define TELL(name, constant, level)                                                                                    \
	__noinline int tell_##name(struct flow *flow, const struct name##_told *told)                                  \
	{                                                                                                              \
		struct delivery delivery = {};                                                                         \
		struct name##_event *event;                                                                            \
                                                                                                                       \
		if (!flow || !told || !start_delivery(&delivery, &flow->header, level))                                \
			return 0;                                                                                      \
		FOR_EACH_CONSUMER(&delivery)                                                                           \
		{                                                                                                      \
			event = reserve(&delivery, &flow->header, control, constant, sizeof(*event));                  \
			if (!event)                                                                                    \
				continue;                                                                              \
			event->told = *told;                                                                           \
			submit(&delivery, event);                                                                      \
		}                                                                                                      \
		return 0;                                                                                              \
	}

TELL(ack, EVENT_ACK, LEVEL_ACK)
TELL(restart, EVENT_RESTART, LEVEL_ROUND)
TELL(state, EVENT_STATE, LEVEL_ROUND)
TELL(loss, EVENT_LOSS, LEVEL_ROUND)
TELL(undo, EVENT_UNDO, told->exit_undone ? LEVEL_EXIT : LEVEL_ROUND)

__noinline int tell_exit(struct flow *flow)
{
	struct delivery delivery = {};
	struct exit_event *event;

	if (!flow || !start_delivery(&delivery, &flow->header, LEVEL_EXIT))
		return 0;
	FOR_EACH_CONSUMER(&delivery)
	{
		event = reserve(&delivery, &flow->header, control, EVENT_EXIT, sizeof(*event));
		if (!event)
			continue;
		event->record = flow->header.exit;
		event->observed = flow->header.observed;
		submit(&delivery, event);
	}
	return 0;
}

__noinline int tell_end(struct flow *flow, const struct end_told *told)
{
	struct delivery delivery = {};
	struct end_event *event;

	if (!flow || !told || !start_delivery(&delivery, &flow->header, LEVEL_EXIT))
		return 0;
	FOR_EACH_CONSUMER(&delivery)
	{
		event = reserve(&delivery, &flow->header, control, EVENT_END, sizeof(*event));
		if (!event)
			continue;
		event->told = *told;
		event->header = flow->header;
		submit(&delivery, event);
	}
	return 0;
}

/* Bytes that the compiler copies in one go; what is longer takes turns, which the verifier follows one by one. */
#define COPY_CHUNK 128

static __always_inline void copy_state(void *to, const struct ALGORITHM *state)
{
	const u32 whole = sizeof(*state) / COPY_CHUNK * COPY_CHUNK;

	_Pragma("clang loop unroll(disable)") for (u32 at = 0; at < whole; at += COPY_CHUNK)
		__builtin_memcpy(to + at, (const void *)state + at, COPY_CHUNK);
	__builtin_memcpy(to + whole, (const void *)state + whole, sizeof(*state) - whole);
}

/* Decides what consumers are told of a flow, and tells them of it. */
__noinline int tell_flow(struct flow *flow, struct flow_told *told)
{
	struct telemetry *here = telemetry_here();
	struct delivery delivery = {};
	struct parameter_slot *slot;
	struct flow_event *event;
	u32 profile;

	if (!flow || !told || !here)
		return 0;
	profile = flow->header.profile;
	slot = bpf_map_lookup_elem(&params, &profile);
	if (!slot)
		return 0;
	if (!flow->header.id)
		flow->header.id = __sync_fetch_and_add(&here->flows, 1);
	flow->header.interest = interest_in(told, flow->header.id, here, slot->telemetry_max);
	flow->header.registrations = here->registrations;
	flow->header.told_generation = slot->generation;
	told->again = flow->header.sequence > 0;
	if (!start_delivery(&delivery, &flow->header, LEVEL_EXIT))
		return 0;
	FOR_EACH_CONSUMER(&delivery)
	{
		event = reserve(&delivery, &flow->header, control, EVENT_FLOW, sizeof(*event) + sizeof(flow->state));
		if (!event)
			continue;
		event->told = *told;
		__builtin_memcpy(event->parameters, slot->sets[slot->active & 1], sizeof(event->parameters));
		event->header = flow->header;
		copy_state(event + 1, &flow->state);
		submit(&delivery, event);
	}
	return 0;
}

__noinline int tell_round(struct flow *flow, const struct ack *ack)
{
	struct delivery delivery = {};
	struct round_event *event;
	struct round *round;

	if (!flow || !ack || !start_delivery(&delivery, &flow->header, LEVEL_ROUND))
		return 0;
	round = &flow->header.round;
	FOR_EACH_CONSUMER(&delivery)
	{
		event = reserve(&delivery, &flow->header, control, EVENT_ROUND, sizeof(*event) + sizeof(flow->state));
		if (!event)
			continue;
		event->duration_us = ack->now_us - round->start_us;
		event->bytes = ack->bytes_acked - round->start_bytes;
		event->delivered = ack->delivered - round->start_delivered;
		event->acks = round->acks;
		event->min_rtt_us = round->min_rtt_us == ~0U ? 0 : round->min_rtt_us;
		event->smoothed_rtt_us = ack->smoothed_rtt_us;
		event->cwnd = ack->cwnd;
		event->ssthresh = ack->ssthresh;
		event->in_flight = ack->in_flight;
		event->mss = ack->mss;
		event->flags = flow->header.flags;
		event->number = round->number;
		copy_state(event + 1, &flow->state);
		submit(&delivery, event);
	}
	return 0;
}

#endif
