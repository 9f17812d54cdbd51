/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The rules of select.bpf.c: which connection gets which congestion control. A table is one longest prefix match trie;
 * what is no address is found there as a prefix that has all its bits. The build makes Rust of it.
 */
#ifndef ONRAMP_SELECT_H
#define ONRAMP_SELECT_H

/* What a rule looks at; a rule that comes first here decides before those that come after. */
enum select_what {
	SELECT_TO_IPV4 = 1, /* the peer's address */
	SELECT_TO_IPV6 = 2, /* likewise */
	SELECT_PORT = 3,    /* the port of the side that listens */
	SELECT_CGROUP = 4,  /* the socket's cgroup, or one above it */
};

/* The side that this host has of a connection. */
enum select_side {
	SELECT_BOTH = 0, /* in a rule: either */
	SELECT_ACCEPT = 1,
	SELECT_CONNECT = 2,
};

/* Rules that a table holds. */
#define SELECT_RULES_MAX 250000

/* Profiles that rules name, and one that is none. */
#define SELECT_PROFILES_MAX 256

/* Cgroups that are looked at, from the socket's own upwards. */
#define SELECT_CGROUPS_MAX 32

/* Bits of a key before its value. */
#define SELECT_HEAD_BITS 32

struct select_key {
	u32 bits;     /* that count of all that follows */
	u8 what;      /* enum select_what */
	u8 side;      /* enum select_side */
	u8 unused[2]; /* 0 */
	u8 value[16]; /* address or port in network order, or a cgroup's id; 0 behind it */
};
_Static_assert(sizeof(struct select_key) == 24, "no implicit padding");

struct select_rule {
	u8 control[15];	    /* name of the congestion control, NUL padded */
	u8 profile;	    /* number of the profile in profile_names; 0: none */
	u32 initial_window; /* segments; 0: the kernel's */
	u32 bits;	    /* of its key, which a lookup does not tell */
};
_Static_assert(sizeof(struct select_rule) == 24, "no implicit padding");

#endif
