/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Which row of its table a target is run on. */
#ifndef ONRAMP_FUZZ_NAMED_H
#define ONRAMP_FUZZ_NAMED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The row that ONRAMP_FUZZ_NAME names, of `count`. Without a name it prints the names of all and ends; with a wrong one it fails. */
static size_t named(const char *(*name_of)(size_t), size_t count, const char *what)
{
	const char *name = getenv("ONRAMP_FUZZ_NAME");

	for (size_t number = 0; number < count; number++) {
		if (!name)
			puts(name_of(number));
		else if (!strcmp(name, name_of(number)))
			return number;
	}
	if (name)
		fprintf(stderr, "ONRAMP_FUZZ_NAME=%s is no %s\n", name, what);
	exit(name ? 2 : 0);
}

#endif
