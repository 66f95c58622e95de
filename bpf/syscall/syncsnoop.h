/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SYNCSNOOP_H
#define CORETAP_SYNCSNOOP_H

#include "lib/core/shared.h"

enum syncsnoop_call {
	SYNCSNOOP_SYNC,
	SYNCSNOOP_MSYNC,
	SYNCSNOOP_FSYNC, /* this and later ones take a descriptor */
	SYNCSNOOP_FDATASYNC,
	SYNCSNOOP_SYNC_FILE_RANGE,
	SYNCSNOOP_SYNCFS,
	SYNCSNOOP_CALLS
};

struct syncsnoop_event {
	struct event_head head;
	struct task_id who;
	__u64 latency_ns;
	__u64 inode;
	__s32 ret;
	__u32 call;
	__u32 mode; /* 0: no file */
	__u16 path_kind;
	struct text path;
	__u16 pad[3];
};

#endif
