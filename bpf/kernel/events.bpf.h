/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The events of a flow (events.h). Included by congestion_ops.bpf.h, which knows the
 * algorithm: `struct flow` and the map of parameters must be declared before. `telemetry` is what is kept of a flow that
 * has subscribers.
 *
 * The functions that write into rings are global, so the verifier looks at each of them once, and not again from every
 * place and in every state that they are called from. It knows nothing of their arguments then but the size: what is
 * read of the socket comes as a struct. One sends an event to one consumer, another asks that one for each of them:
 * what is in a loop is looked at as often as the loop turns.
 */
#ifndef ONRAMP_EVENTS_BPF_H
#define ONRAMP_EVENTS_BPF_H

#include "round.bpf.h"
#include "telemetry.bpf.h"

/*
 * Defines emit_<name>(flow, telemetry, payload), which sends a struct <name>_event to all that want it: filled in by
 * fill_<name>(event, flow, telemetry, payload). EMIT_STATE: with the algorithm's state behind it, of which they take the second
 * part, too (extra.bpf.h).
 */
#define EMIT(name, constant, level_of_event, type) EMIT_WITH(name, constant, level_of_event, type, 0, , )
#define EMIT_STATE(name, constant, level_of_event, type)                                                               \
	EMIT_WITH(name, constant, level_of_event, type, sizeof(struct ALGORITHM) + EXTRA_BYTES, EXTRA_PARAMETER,       \
		  EXTRA_ARGUMENT)
#define EMIT_WITH(name, constant, level_of_event, type, more, parameter, argument)                                     \
	__noinline int deliver_##name(const struct flow *flow, const struct flow_telemetry *telemetry,                 \
				      const struct type *payload, struct delivery *delivery parameter)                 \
	{                                                                                                              \
		struct name##_event *event;                                                                            \
                                                                                                                       \
		if (!flow || !telemetry || !payload || !delivery)                                                      \
			return 0;                                                                                      \
		event = reserve(delivery, telemetry, control, constant, sizeof(*event) + (more));                      \
		if (!event)                                                                                            \
			return 0;                                                                                      \
		fill_##name(event, flow, telemetry, payload argument);                                                 \
		bpf_ringbuf_submit(event, delivery->wake);                                                             \
		return 0;                                                                                              \
	}                                                                                                              \
                                                                                                                       \
	__noinline int emit_##name(const struct flow *flow, struct flow_telemetry *telemetry,                          \
				   const struct type *payload parameter)                                               \
	{                                                                                                              \
		struct delivery delivery = {};                                                                         \
                                                                                                                       \
		if (!flow || !telemetry || !payload || !begin_event(telemetry, level_of_event))                        \
			return 0;                                                                                      \
		delivery.now_ns = bpf_ktime_get_ns();                                                                  \
		delivery.level = level_of_event;                                                                       \
		FOR_EACH_CONSUMER(slot)                                                                                \
		{                                                                                                      \
			delivery.slot = slot;                                                                          \
			if (wants(telemetry, slot, level_of_event))                                                    \
				deliver_##name(flow, telemetry, payload, &delivery argument);                          \
		}                                                                                                      \
		return 0;                                                                                              \
	}

/* Defines the same for an event that is its header and a payload. */
#define EMIT_PAYLOAD(name, constant, level)                                                                            \
	static __always_inline void fill_##name(struct name##_event *event, const struct flow *flow,                   \
						const struct flow_telemetry *telemetry,                                \
						const struct name##_payload *payload)                                  \
	{                                                                                                              \
		event->payload = *payload;                                                                             \
	}                                                                                                              \
	EMIT(name, constant, level, name##_payload)

EMIT_PAYLOAD(ack, EVENT_ACK, LEVEL_ACK)
EMIT_PAYLOAD(restart, EVENT_RESTART, LEVEL_ROUND)
EMIT_PAYLOAD(state, EVENT_STATE, LEVEL_ROUND)
EMIT_PAYLOAD(loss, EVENT_LOSS, LEVEL_ROUND)
EMIT_PAYLOAD(undo, EVENT_UNDO, payload->exit_undone ? LEVEL_EXIT : LEVEL_ROUND)

static __always_inline void fill_exit(struct exit_event *event, const struct flow *flow,
				      const struct flow_telemetry *telemetry, const struct exit_record *payload)
{
	event->record = *payload;
	event->observed = telemetry->observed;
}
EMIT(exit, EVENT_EXIT, LEVEL_EXIT, exit_record)

static __always_inline void fill_end(struct end_event *event, const struct flow *flow,
				     const struct flow_telemetry *telemetry, const struct end_payload *payload)
{
	event->payload = *payload;
	event->header = flow->header;
	__builtin_memcpy(event->outcomes, telemetry->outcomes, sizeof(event->outcomes));
}
EMIT(end, EVENT_END, LEVEL_EXIT, end_payload)

/* Copies what follows an event, in numbers of 64 bits. */
static __always_inline void copy_state(void *to, const struct ALGORITHM *state EXTRA_PARAMETER)
{
	_Static_assert(sizeof(*state) % sizeof(u64) == 0, "copied in numbers of 64 bits");
	const u64 *words = (const u64 *)state;

	for (u32 i = 0; i < sizeof(*state) / sizeof(u64); i++)
		((u64 *)to)[i] = words[i];
	copy_extra((u64 *)to + sizeof(*state) / sizeof(u64) EXTRA_ARGUMENT);
}

static __always_inline void fill_flow(struct flow_event *event, const struct flow *flow,
				      const struct flow_telemetry *telemetry,
				      const struct flow_payload *payload EXTRA_PARAMETER)
{
	u32 profile = flow->header.profile;
	const struct parameter_slot *slot;

	event->payload = *payload;
	event->header = flow->header;
	copy_state(event + 1, &flow->state EXTRA_ARGUMENT);
	slot = bpf_map_lookup_elem(&params, &profile);
	if (slot)
		__builtin_memcpy(event->parameters, active_set(slot, &event->payload.generation),
				 sizeof(event->parameters));
}
EMIT_STATE(flow, EVENT_FLOW, LEVEL_EXIT, flow_payload)

/* Decides which levels consumers get of a flow, and emits the flow's event. */
__noinline int report_flow(const struct flow *flow, struct flow_telemetry *telemetry,
			   struct flow_payload *payload EXTRA_PARAMETER)
{
	struct parameter_slot *slot;
	u32 profile;

	if (!flow || !telemetry || !payload)
		return 0;
	profile = flow->header.profile;
	slot = bpf_map_lookup_elem(&params, &profile);
	if (!slot)
		return 0;
	if (!telemetry->id)
		telemetry->id = __sync_fetch_and_add(&telemetry_here.flows, 1);
	telemetry->interest = interest_in(payload, telemetry->id, slot->telemetry_max);
	telemetry->registrations = telemetry_here.registrations;
	telemetry->reported_generation = slot->generation;
	payload->again = telemetry->sequence > 0;
	emit_flow(flow, telemetry, payload EXTRA_ARGUMENT);
	return 0;
}

static __always_inline void fill_round(struct round_event *event, const struct flow *flow,
				       const struct flow_telemetry *telemetry,
				       const struct ack_payload *payload EXTRA_PARAMETER)
{
	describe_round(&event->payload, &telemetry->round, payload);
	copy_state(event + 1, &flow->state EXTRA_ARGUMENT);
}
EMIT_STATE(round, EVENT_ROUND, LEVEL_ROUND, ack_payload)

#endif
