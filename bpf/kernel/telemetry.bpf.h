/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Consumers, and how an event reaches their rings. The maps are one for all algorithms: telemetry.bpf.c makes them, the
 * loader pins them, and every shell that is attached uses those. Without consumers all of this is one read.
 *
 *	wanted ──► observe (has this flow subscribers? report it) ──► begin_event
 *	                                                      each consumer: reserve, submit ◄──┘
 */
#ifndef ONRAMP_TELEMETRY_BPF_H
#define ONRAMP_TELEMETRY_BPF_H

#include "../events.h"
#include "types.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* A map of one element, which libbpf makes of a section of its own: programs have its address, and look nothing up. */
struct telemetry telemetry_here SEC(".data.telemetry");

/* Only a template: every consumer brings a ring of its own size. */
struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, CONSUMER_MAX);
	__type(key, u32);
	__array(values, struct ring);
} rings SEC(".maps");

/* The bits of a level in struct telemetry.wanted, of all consumers. */
#define EVERY_CONSUMER(level) (0x0101010101010101ULL << ((level) - 1))
/* All bits of one consumer. */
#define EVERY_LEVEL(slot) (0xffULL << (8 * (slot)))

#define FOR_EACH_CONSUMER(slot)                                                                                        \
	_Pragma("clang loop unroll(disable)") for (u32 slot = 0; (slot) < CONSUMER_MAX; (slot)++)

/* Whether a consumer subscribes to a level: the one check where none does. */
static __always_inline bool wanted(u32 level)
{
	u64 all = telemetry_here.wanted;

	if (!all)
		return false;
	/* Else the compiler leaves out the question that answers itself where nobody listens. */
	barrier_var(all);
	return all & EVERY_CONSUMER(level);
}

static __always_inline bool matches(const struct consumer *consumer, const struct flow_payload *flow)
{
	u64 high = (u64)bpf_ntohl(flow->remote[0]) << 32 | bpf_ntohl(flow->remote[1]);
	u64 low = (u64)bpf_ntohl(flow->remote[2]) << 32 | bpf_ntohl(flow->remote[3]);

	if (((high ^ consumer->prefix[0]) & consumer->mask[0]) | ((low ^ consumer->prefix[1]) & consumer->mask[1]))
		return false;
	if (consumer->remote_port && consumer->remote_port != flow->remote_port)
		return false;
	return !consumer->local_port || consumer->local_port == flow->local_port;
}

/* The levels that a consumer gets of this flow, a bit each: by its subscription, sampling, filter and ceiling. */
__noinline int levels_for(const struct flow_payload *flow, u64 id, u32 slot, u32 ceiling)
{
	const struct consumer *consumer;

	if (!flow || slot >= CONSUMER_MAX)
		return 0;
	consumer = &telemetry_here.consumers[slot];
	if (!consumer->id || !matches(consumer, flow))
		return 0;
	if (consumer->sampling > 1 && id % consumer->sampling)
		return 0;
	return (1 << (min_u64(consumer->level, ceiling) & 3)) - 1;
}

/* The levels that each consumer gets of this flow: like struct telemetry.wanted, with sampling, filter and ceiling. */
static __always_inline u64 interest_in(const struct flow_payload *flow, u64 id, u32 ceiling)
{
	u64 interest = 0;

	FOR_EACH_CONSUMER(slot)
	{
		interest |= (u64)(u8)levels_for(flow, id, slot, ceiling) << (8 * slot);
	}
	return interest;
}

/* One event on its way to one consumer. */
struct delivery {
	u64 now_ns;
	u64 wake; /* flags of the submission */
	u32 level;
	u32 slot;
};

/* Whether a consumer gets events of a level of this flow. */
static __always_inline bool wants(const struct flow_telemetry *telemetry, u32 slot, u32 level)
{
	return telemetry->interest >> (8 * slot) & 1 << (level - 1);
}

/* False: no consumer gets an event of this level of this flow. */
static __always_inline bool begin_event(struct flow_telemetry *telemetry, u32 level)
{
	if (!(telemetry->interest & EVERY_CONSUMER(level)))
		return false;
	telemetry->sequence++;
	return true;
}

/* Room for the event in the consumer's ring, its first part filled in; null: no room, or no lease. */
static __always_inline void *reserve(struct delivery *delivery, const struct flow_telemetry *telemetry,
				     const char *control, u32 kind, u64 size)
{
	u32 slot = delivery->slot;
	struct consumer *consumer;
	struct event *event;
	void *ring;

	if (slot >= CONSUMER_MAX)
		return NULL;
	consumer = &telemetry_here.consumers[slot];
	if (consumer->lease_ns < delivery->now_ns) {
		__sync_fetch_and_and(&telemetry_here.wanted, ~EVERY_LEVEL(slot));
		return NULL;
	}
	ring = bpf_map_lookup_elem(&rings, &slot);
	if (!ring)
		return NULL;
	/* Waking costs more than writing: the reader looks by itself from time to time. */
	delivery->wake =
		delivery->level == LEVEL_EXIT || bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) >= consumer->wake_bytes
			? BPF_RB_FORCE_WAKEUP
			: BPF_RB_NO_WAKEUP;
	event = bpf_ringbuf_reserve(ring, size, 0);
	if (!event) {
		__sync_fetch_and_add(&consumer->lost, 1);
		return NULL;
	}
	event->version = ABI_VERSION;
	event->kind = kind;
	event->size = size;
	event->time_ns = delivery->now_ns;
	event->flow = telemetry->id;
	event->lost = consumer->lost;
	event->sequence = telemetry->sequence;
	event->netns = telemetry->netns;
	__builtin_memcpy(event->control, control, sizeof(event->control));
	return event;
}

#endif
