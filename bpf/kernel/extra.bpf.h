/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The second part of an algorithm's state (TRAIT_EXTRA), in a socket storage of its own: made with the first ACK that is
 * evaluated with parameters that need it, and gone with the flow. Included by congestion_ops.bpf.h, which knows the
 * algorithm, once it has declared struct flow and the map of parameters.
 *
 * A global function takes it as its last argument, which may be null, but only where the algorithm has the trait: the
 * compiler does not pass what is not read, and the verifier requires all arguments.
 */
#ifndef ONRAMP_EXTRA_BPF_H
#define ONRAMP_EXTRA_BPF_H

#include "../events.h"

#if HAS(TRAIT_EXTRA)
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct CALL(extra));
} extras SEC(".maps");

#define EXTRA_BYTES sizeof(struct CALL(extra))
#define EXTRA_PARAMETER , struct CALL(extra) * extra
#define EXTRA_ARGUMENT , extra
#define EXTRA_OF(sk) , extra_of(sk)
#define EXTRA_FOR_ACK(sk, values) , extra_for_ack(sk, values)

static __always_inline struct CALL(extra) * extra_of(struct sock *sk)
{
	return bpf_sk_storage_get(&extras, sk, 0, 0);
}

/* The second part for an ACK. Null: the parameters need none, or there is no memory. */
static __always_inline struct CALL(extra) * extra_for_ack(struct sock *sk, const struct CALL(params) * values)
{
	if (!CALL(wants_extra)(values))
		return 0;
	return bpf_sk_storage_get(&extras, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
}

/* The second part's turn on an ACK, before the first's. The verifier looks at it by itself. */
__noinline int call_extra(struct CALL(extra) * extra, const struct CALL(params) * values, struct ack_payload *payload)
{
	if (extra && values && payload && CALL(wants_extra)(values))
		CALL(on_ack_extra)(extra, values, &payload->ack, &payload->verdict);
	return 0;
}

static __always_inline void restart_extra(struct sock *sk)
{
	struct CALL(extra) *extra = extra_of(sk);

	if (extra)
		CALL(restart_extra)(extra);
}

static __always_inline void delete_extra(struct sock *sk)
{
	bpf_sk_storage_delete(&extras, sk);
}

/* To where it follows the first part, in numbers of 64 bits: zeros where there is none. */
static __always_inline void copy_extra(u64 *to, const struct CALL(extra) * extra)
{
	_Static_assert(sizeof(*extra) % sizeof(u64) == 0, "copied in numbers of 64 bits");
	const u64 *words = (const u64 *)extra;

	if (!extra) {
		KEEP_LOOP for (u32 i = 0; i < sizeof(*extra) / sizeof(u64); i++) to[i] = 0;
		return;
	}
	KEEP_LOOP for (u32 i = 0; i < sizeof(*extra) / sizeof(u64); i++) to[i] = words[i];
}
#else
#define EXTRA_BYTES 0
#define EXTRA_PARAMETER
#define EXTRA_ARGUMENT
#define EXTRA_OF(sk)
#define EXTRA_FOR_ACK(sk, values)

static __always_inline void restart_extra(struct sock *sk)
{
}

static __always_inline void delete_extra(struct sock *sk)
{
}

static __always_inline void copy_extra(u64 *to)
{
}
#endif

#endif
