/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Calls an algorithm as a shell would and looks at what comes back. What must hold for every algorithm and every input
 * is here; what one algorithm promises beyond is in tests/.
 */
#ifndef ONRAMP_FUZZ_CHECK_H
#define ONRAMP_FUZZ_CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../shell.h"
#include "../src/shim.c"

#define TRAITS_ROW(alg, ALG, about, source) ALG##_TRAITS,
static const u32 all_traits[] = { ALGORITHMS(TRAITS_ROW) };
#define READS_ROW(alg, ALG, about, source) ALG##_READS,
static const u32 all_reads[] = { ALGORITHMS(READS_ROW) };

/*
 * One flow. State and parameters are on the heap with exactly their size, so that the address sanitizer sees every
 * access next to them.
 */
struct flow {
	const struct algorithm_row *row;
	u32 traits;
	u32 reads; /* NAME_READS */
	void *state;
	void *other_state; /* that has had the same ACKs, but only what is read of them */
	void *asleep;	   /* before an ACK that is slept through */
	u64 *params;
	bool traced;
};

/* Which outcomes any flow has had. */
static bool outcomes_seen[OUTCOME_MAX];

static void show_ack(const struct ack *ack)
{
	fprintf(stderr,
		"  ack now_us=%" PRIu64 " bytes_acked=%" PRIu64 " bytes_sent=%" PRIu64 " pacing_rate=%" PRIu64
		" bytes_outstanding=%u delivered=%u acked=%u rtt_us=%d smoothed_rtt_us=%u min_rtt_us=%u cwnd=%u"
		" ssthresh=%u in_flight=%u mss=%u gso_max_size=%u flags=%#x\n",
		ack->now_us, ack->bytes_acked, ack->bytes_sent, ack->pacing_rate, ack->bytes_outstanding,
		ack->delivered, ack->acked, ack->rtt_us, ack->smoothed_rtt_us, ack->min_rtt_us, ack->cwnd,
		ack->ssthresh, ack->in_flight, ack->mss, ack->gso_max_size, ack->flags);
}

static void show_verdict(const struct flow *flow, const struct verdict *verdict)
{
	const char *name = verdict->outcome < OUTCOME_MAX ? flow->row->outcomes[verdict->outcome].name : 0;

	fprintf(stderr,
		"  verdict outcome=%u (%s) growth=%u growth_limit=%u cwnd=%u ssthresh=%u undo_limit=%u "
		"pacing_rate=%" PRIu64 "\n",
		verdict->outcome, name ? name : "no name", verdict->growth, verdict->growth_limit, verdict->cwnd,
		verdict->ssthresh, verdict->undo_limit, verdict->pacing_rate);
}

static void show_parameters(const struct flow *flow)
{
	fprintf(stderr, "%s", flow->row->name);
	for (u32 i = 0; i < flow->row->parameter_count; i++)
		fprintf(stderr, " %s=%" PRIu64, flow->row->parameters[i].name, flow->params[i]);
	fprintf(stderr, "\n");
}

/* Says what was broken and ends; the fuzzer keeps the input. */
static void require(bool holds, const struct flow *flow, const struct ack *ack, const struct verdict *verdict,
		    const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "BROKEN: %s\n", what);
	show_parameters(flow);
	show_ack(ack);
	if (verdict)
		show_verdict(flow, verdict);
	abort();
}

static void read_exports(const struct flow *flow)
{
	u32 sum = 0, value;

	for (u32 i = 0; i < flow->row->export_count; i++) {
		const struct export_row *row = &flow->row->exports[i];

		for (u32 at = 0; at < row->count; at++) {
			memcpy(&value, (const u8 *)flow->state + row->offset + 4 * at, sizeof(value));
			sum += value;
		}
	}
	*(volatile u32 *)&sum = sum;
}

/* An ACK as the kernel has it, where fields are 0 that the algorithm does not read. */
static struct ack as_read(const struct ack *ack, u32 fields)
{
#define CLEAR_UNREAD(name, column, type, unit, values, side, help) .name = fields & READS(name) ? ack->name : 0,
	struct ack read = { ACK_FIELDS(CLEAR_UNREAD) };
#undef CLEAR_UNREAD

	read.acked = ack->acked;
	read.rtt_us = ack->rtt_us;
	read.mss = ack_mss(&read);
	return read;
}

static struct verdict call_on_ack(struct flow *flow, const struct ack *ack)
{
	const struct ack before = *ack;
	const struct ack read = as_read(ack, flow->reads);
	struct verdict verdict = { 0 }, other = { 0 };

	if (flow->traced)
		show_ack(ack);
	memcpy(flow->other_state, flow->state, flow->row->state_size);
	flow->row->on_ack(flow->other_state, flow->params, &read, &other);
	flow->row->on_ack(flow->state, flow->params, ack, &verdict);
	if (flow->traced)
		show_verdict(flow, &verdict);
	read_exports(flow);
#define REQUIRE(condition, what) require(condition, flow, ack, &verdict, what)
	REQUIRE(!memcmp(&before, ack, sizeof(before)), "the ACK was written to");
	REQUIRE(!memcmp(&other, &verdict, sizeof(verdict)), "another verdict without what NAME_READS does not name");
	REQUIRE(!memcmp(flow->other_state, flow->state, flow->row->state_size),
		"another state without what NAME_READS does not name");
	REQUIRE(verdict.outcome < OUTCOME_MAX, "an outcome beyond the counters");
	REQUIRE(flow->row->outcomes[verdict.outcome].name, "an outcome without a name");
	REQUIRE(verdict.growth <= GROWTH_LIMITED, "an unknown kind of growth");
	REQUIRE(verdict.cwnd <= ack->cwnd, "the window is raised");
	REQUIRE(verdict.outcome != OUTCOME_EXIT || verdict.ssthresh || verdict.growth == GROWTH_LIMITED,
		"an exit with neither a threshold nor a halt of growth");
	REQUIRE(verdict.growth == GROWTH_BASE || flow->traits & TRAIT_LIMITS_GROWTH,
		"growth is limited without TRAIT_LIMITS_GROWTH");
	REQUIRE(!verdict.pacing_rate || flow->traits & TRAIT_PACES, "a pacing rate without TRAIT_PACES");
#undef REQUIRE
	outcomes_seen[verdict.outcome] = true;
	return verdict;
}

static u32 call_on_loss(struct flow *flow, const struct ack *ack, u32 base_ssthresh)
{
	u32 threshold = flow->row->on_loss(flow->state, flow->params, ack, base_ssthresh);

	if (flow->traced)
		fprintf(stderr, "  loss: the base says %u, the threshold is %u\n", base_ssthresh, threshold);
	read_exports(flow);
	require(threshold >= MIN_WINDOW, flow, ack, 0, "a threshold below MIN_WINDOW after a loss");
	return threshold;
}

static void call_restart(struct flow *flow)
{
	if (flow->traced)
		fprintf(stderr, "  restart\n");
	flow->row->restart(flow->state);
	read_exports(flow);
}

#endif
