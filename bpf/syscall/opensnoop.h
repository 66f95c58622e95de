/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_OPENSNOOP_H
#define CORETAP_OPENSNOOP_H

#include "lib/core/shared.h"

#define OPENSNOOP_FLAGS 16 /* conditions of --flag-filter */

/* Meaning of an event's texts. */
enum opensnoop_path {
	OPENSNOOP_GIVEN = 1,     /* path: as passed by the program; without it, unreadable */
	OPENSNOOP_CUT = 2,       /* ... is truncated */
	OPENSNOOP_FILE = 4,      /* walked: the opened file */
	OPENSNOOP_BASE = 8,      /* walked: the directory that path is relative to */
	OPENSNOOP_WALK_CUT = 16, /* walked: components towards the root are missing */
	OPENSNOOP_FLAGS_UNKNOWN = 32,
};

enum opensnoop_call {
	OPENSNOOP_OPEN,
	OPENSNOOP_CREAT,
	OPENSNOOP_OPENAT,
	OPENSNOOP_OPENAT2,
	OPENSNOOP_HANDLE,
	OPENSNOOP_CALLS
};

struct opensnoop_event {
	struct event_head head;
	__u64 latency_ns;
	__u64 flags;
	__u64 callers; /* key in `stacks`; 0: none */
	struct task_id who;
	__u32 mode;
	__s32 ret;
	__s32 dfd;
	__u16 call;
	__u16 what; /* bits of enum opensnoop_path */
	struct text path;
	struct text walked; /* components, last first */
};

#endif
