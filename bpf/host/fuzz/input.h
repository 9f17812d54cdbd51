/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The fuzzer's bytes, taken from the front. After the end there are zeros. */
#ifndef ONRAMP_FUZZ_INPUT_H
#define ONRAMP_FUZZ_INPUT_H

#include <stddef.h>

#include "../../algorithm/base.h"

struct input {
	const u8 *at;
	size_t left;
};

static u8 take_byte(struct input *input)
{
	if (!input->left)
		return 0;
	input->left--;
	return *input->at++;
}

/* A number that is worth trying: small, just below a wrap, at a power of two, or any. */
static u64 take_number(struct input *input)
{
	u8 kind = take_byte(input);
	u64 number = 0;

	switch (kind % 4) {
	case 0:
		return take_byte(input);
	case 1:
		return ~(u64)take_byte(input);
	case 2:
		return (1ULL << (kind >> 2)) - take_byte(input) % 4;
	default:
		for (int i = 0; i < 8; i++)
			number = number << 8 | take_byte(input);
		return number;
	}
}

/* A number from `min` to `max`, both included. */
static u64 take_within(struct input *input, u64 min, u64 max)
{
	u64 number = take_number(input);

	if (number >= min && number <= max)
		return number;
	return max - min == ~0ULL ? number : min + number % (max - min + 1);
}

#endif
