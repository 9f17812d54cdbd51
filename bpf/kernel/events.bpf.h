/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What consumers are told of a flow, event by event (events.h). Included by congestion_ops.bpf.h, which knows the
 * algorithm: `struct flow` and the map of parameters must be declared before. `heard` is what is kept of a flow that
 * somebody listens to.
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
 * Defines tell_<name>(flow, heard, told), which sends a struct <name>_event to all that want it: filled in by
 * fill_<name>(event, flow, heard, told). TELL_STATE: with the algorithm's state behind it, of which they take the second
 * part, too (extra.bpf.h).
 */
#define TELL(name, constant, level_of_event, type) TELL_WITH(name, constant, level_of_event, type, 0, , )
#define TELL_STATE(name, constant, level_of_event, type)                                                               \
	TELL_WITH(name, constant, level_of_event, type, sizeof(struct ALGORITHM) + EXTRA_BYTES, EXTRA_PARAMETER,       \
		  EXTRA_ARGUMENT)
#define TELL_WITH(name, constant, level_of_event, type, more, parameter, argument)                                     \
	__noinline int give_##name(const struct flow *flow, const struct flow_telemetry *heard,                        \
				   const struct type *told, struct delivery *delivery parameter)                       \
	{                                                                                                              \
		struct name##_event *event;                                                                            \
                                                                                                                       \
		if (!flow || !heard || !told || !delivery)                                                             \
			return 0;                                                                                      \
		event = reserve(delivery, heard, control, constant, sizeof(*event) + (more));                          \
		if (!event)                                                                                            \
			return 0;                                                                                      \
		fill_##name(event, flow, heard, told argument);                                                        \
		bpf_ringbuf_submit(event, delivery->wake);                                                             \
		return 0;                                                                                              \
	}                                                                                                              \
                                                                                                                       \
	__noinline int tell_##name(const struct flow *flow, struct flow_telemetry *heard,                              \
				   const struct type *told parameter)                                                  \
	{                                                                                                              \
		struct delivery delivery = {};                                                                         \
                                                                                                                       \
		if (!flow || !heard || !told || !begin_event(heard, level_of_event))                                   \
			return 0;                                                                                      \
		delivery.now_ns = bpf_ktime_get_ns();                                                                  \
		delivery.level = level_of_event;                                                                       \
		FOR_EACH_CONSUMER(slot)                                                                                \
		{                                                                                                      \
			delivery.slot = slot;                                                                          \
			if (wants(heard, slot, level_of_event))                                                        \
				give_##name(flow, heard, told, &delivery argument);                                    \
		}                                                                                                      \
		return 0;                                                                                              \
	}

/* Defines the same for an event that is its header and what is told. */
#define TELL_ALL(name, constant, level)                                                                                \
	static __always_inline void fill_##name(struct name##_event *event, const struct flow *flow,                   \
						const struct flow_telemetry *heard, const struct name##_told *told)    \
	{                                                                                                              \
		event->told = *told;                                                                                   \
	}                                                                                                              \
	TELL(name, constant, level, name##_told)

TELL_ALL(ack, EVENT_ACK, LEVEL_ACK)
TELL_ALL(restart, EVENT_RESTART, LEVEL_ROUND)
TELL_ALL(state, EVENT_STATE, LEVEL_ROUND)
TELL_ALL(loss, EVENT_LOSS, LEVEL_ROUND)
TELL_ALL(undo, EVENT_UNDO, told->exit_undone ? LEVEL_EXIT : LEVEL_ROUND)

static __always_inline void fill_exit(struct exit_event *event, const struct flow *flow,
				      const struct flow_telemetry *heard, const struct exit_record *told)
{
	event->record = *told;
	event->observed = heard->observed;
}
TELL(exit, EVENT_EXIT, LEVEL_EXIT, exit_record)

static __always_inline void fill_end(struct end_event *event, const struct flow *flow,
				     const struct flow_telemetry *heard, const struct end_told *told)
{
	event->told = *told;
	event->header = flow->header;
	__builtin_memcpy(event->outcomes, heard->outcomes, sizeof(event->outcomes));
}
TELL(end, EVENT_END, LEVEL_EXIT, end_told)

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
				      const struct flow_telemetry *heard, const struct flow_told *told EXTRA_PARAMETER)
{
	u32 profile = flow->header.profile;
	const struct parameter_slot *slot;

	event->told = *told;
	event->header = flow->header;
	copy_state(event + 1, &flow->state EXTRA_ARGUMENT);
	slot = bpf_map_lookup_elem(&params, &profile);
	if (slot)
		__builtin_memcpy(event->parameters, slot->sets[slot->active & 1], sizeof(event->parameters));
}
TELL_STATE(flow, EVENT_FLOW, LEVEL_EXIT, flow_told)

/* Decides what consumers are told of a flow, and tells them of it. */
__noinline int meet_flow(const struct flow *flow, struct flow_telemetry *heard, struct flow_told *told EXTRA_PARAMETER)
{
	struct telemetry *here = telemetry_here();
	struct parameter_slot *slot;
	u32 profile;

	if (!flow || !heard || !told || !here)
		return 0;
	profile = flow->header.profile;
	slot = bpf_map_lookup_elem(&params, &profile);
	if (!slot)
		return 0;
	if (!heard->id)
		heard->id = __sync_fetch_and_add(&here->flows, 1);
	heard->interest = interest_in(told, heard->id, slot->telemetry_max);
	heard->registrations = here->registrations;
	heard->told_generation = slot->generation;
	told->generation = slot->generation;
	told->again = heard->sequence > 0;
	tell_flow(flow, heard, told EXTRA_ARGUMENT);
	return 0;
}

static __always_inline void fill_round(struct round_event *event, const struct flow *flow,
				       const struct flow_telemetry *heard, const struct ack_told *told EXTRA_PARAMETER)
{
	describe_round(&event->told, &heard->round, told);
	copy_state(event + 1, &flow->state EXTRA_ARGUMENT);
}
TELL_STATE(round, EVENT_ROUND, LEVEL_ROUND, ack_told)

#endif
