/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Tests of an algorithm from outside the tree, which `onramp-lab build` executes:
 *
 *	TEST(what_it_proves)
 *	{
 *		CHECK(condition);
 *	}
 */
#ifndef ONRAMP_TEST_H
#define ONRAMP_TEST_H

#include "../algorithm/algorithm.h"

/* Of the first check that has failed; 0: none has. */
u32 onramp_failed_line;

#define TEST(name) void test_##name(void)
#define CHECK(condition) check_at(condition, __LINE__)

static __always_inline void check_at(bool holds, u32 line)
{
	if (!holds && !onramp_failed_line)
		onramp_failed_line = line;
}

#endif
