/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_STATSNOOP_H
#define CORETAP_STATSNOOP_H

#include "lib/core/shared.h"

/* Meaning of an event's text. */
enum statsnoop_path {
	STATSNOOP_GIVEN = 1, /* as passed by the program */
	STATSNOOP_CUT = 2,   /* ... is truncated */
	STATSNOOP_FILE = 4,  /* of the descriptor's file */
};

enum statsnoop_call {
	STATSNOOP_STAT,
	STATSNOOP_LSTAT,
	STATSNOOP_STATFS,
	STATSNOOP_NEWFSTATAT,
	STATSNOOP_STATX,
	STATSNOOP_FSTAT,
	STATSNOOP_FSTATFS,
	STATSNOOP_CALLS
};

struct statsnoop_event {
	struct event_head head;
	__u64 latency_ns;
	__u64 inode; /* of the descriptor's file */
	struct task_id who;
	__s32 ret;
	__s32 dfd;
	__u32 mode; /* of the descriptor's file */
	__u16 call;
	__u16 what; /* bits of enum statsnoop_path */
	__u32 path_kind;
	struct text path;
};

#endif
