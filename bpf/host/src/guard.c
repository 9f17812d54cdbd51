/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The guard's arithmetic, for Rust. */
#include "../../guard.h"

u32 onramp_guard_arm_of(const struct guard *guard, u32 hash)
{
	return guard_arm_of(guard, hash);
}

u32 onramp_guard_log2(u64 number)
{
	return guard_log2(number);
}

u32 onramp_guard_retransmits(u64 again, u64 sent)
{
	return guard_retransmits(again, sent);
}

u32 onramp_guard_goodput(u64 bytes, u32 jiffies)
{
	return guard_goodput(bytes, jiffies);
}

u32 onramp_guard_first(u32 jiffies)
{
	return guard_first(jiffies);
}

bool onramp_guard_record(struct guard *guard, u32 arm, const u32 *observed, u64 now_ns)
{
	return guard_record(guard, arm, observed, now_ns);
}
