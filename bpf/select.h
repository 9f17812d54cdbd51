/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The rules of select.bpf.c: which connection gets which congestion control. A table is one longest prefix match trie. The
 * peer's address comes last in a key, so one lookup finds the rule of the longest prefix among those that agree in all the
 * rest, else the one of them that names no prefix. The build makes Rust of it.
 */
#ifndef ONRAMP_SELECT_H
#define ONRAMP_SELECT_H

/* The side that this host has of a connection. */
enum select_side {
	SELECT_BOTH = 0, /* in a rule: either */
	SELECT_ACCEPT = 1,
	SELECT_CONNECT = 2,
	SELECT_SHAPES = 3, /* not a rule, but the entry that says which shapes of rules the table has */
};

/*
 * What a rule names in addition to its side and its prefix. Each shape of rules that a table has takes a lookup, or one for each
 * cgroup; a bit of the shapes, 1 << (side * SELECT_NAMED + named), says that there may be rules of it.
 */
enum select_named {
	SELECT_NAMES_PORT = 1,
	SELECT_NAMES_CGROUP = 2,
	SELECT_NAMED = 4, /* how many combinations there are */
};

/* Of all sides. */
#define SELECT_CGROUP_SHAPES 0xccc

/* Rules that a table holds. */
#define SELECT_RULES_MAX 250000

/* Profiles that rules name, and one that is none. */
#define SELECT_PROFILES_MAX 256

/* Cgroups that are looked at, from the socket's own upwards. */
#define SELECT_CGROUPS_MAX 32

/* Bits of the key of the shapes; of a rule without a prefix; of a key before those of an address. */
#define SELECT_SHAPES_BITS 8
#define SELECT_BARE_BITS 88
#define SELECT_HEAD_BITS 96

enum select_family {
	SELECT_IPV4 = 4,
	SELECT_IPV6 = 6,
};

/*
 * The kernel compares eight bytes at a time at every node from the root down: the side comes first, because it tells the
 * shapes from the rules, and an IPv4 address ends with the second eight.
 */
struct select_key {
	u32 bits;	/* that count of all that follows */
	u8 side;	/* enum select_side */
	u8 port[2];	/* that of the listening side, in network order; 0: any */
	u8 cgroup[8];	/* id of the socket's cgroup, or of one above it, in host order; 0: any */
	u8 family;	/* enum select_family */
	u8 address[16]; /* the peer's, in network order; 0 behind it */
};
_Static_assert(sizeof(struct select_key) == 32, "no implicit padding");

struct select_rule {
	u8 control[15];	    /* name of the congestion control, NUL padded */
	u8 profile;	    /* number of the profile in profile_names; 0: none */
	u32 initial_window; /* segments; 0: the kernel's */
	u32 resume_kbps;    /* rate of the path, kbit/s; 0: the path is not known */
	u32 resume_rtt_us;  /* its minimum RTT; 0 likewise */
	u32 bits;	    /* of its key, which a lookup does not return; of SELECT_SHAPES: the shapes */
};
_Static_assert(sizeof(struct select_rule) == 32, "no implicit padding");

#endif
