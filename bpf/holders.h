/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What migrate.bpf.c reports of sockets that hold the code of a congestion control. Both sides are of one process and one
 * build, which makes Rust of it.
 */
#ifndef ONRAMP_HOLDERS_H
#define ONRAMP_HOLDERS_H

/* A socket that has a congestion control of onramp's, or a listening socket. */
struct holder {
	u64 socket; /* its address in the kernel, which no other has; never shown */
	u32 code;   /* id of the struct_ops map whose code it has */
	u32 pid;    /* of a process that has it open; 0: from TCP's table of sockets */
	u8 state;   /* TCP_ESTABLISHED and so on */
	u8 chosen;  /* 1: TCP_CONGESTION was set, so connections that it accepts get the same */
	u16 port;   /* local; of a listening socket */
	u32 unused; /* 0 */
	u8 control[16];
	u8 command[16]; /* name of that process */
};
_Static_assert(sizeof(struct holder) == 56, "no implicit padding");

/* What became of sockets that were to move. */
struct migrated {
	u32 moved;     /* listening ones included */
	u32 listening; /* of those */
	u32 refused;
	u32 unused;
};
_Static_assert(sizeof(struct migrated) == 16, "no implicit padding");

#endif
