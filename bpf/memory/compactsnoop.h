/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_COMPACTSNOOP_H
#define CORETAP_COMPACTSNOOP_H

#include "lib/core/shared.h"

#define FREE_AREAS 16 /* more than the orders of any kernel; the rest stay 0 */

enum compactsnoop_kind {
	COMPACT_DIRECT,
	COMPACT_MANUAL,
	COMPACT_PROACTIVE,
	COMPACT_KCOMPACTD,
	COMPACT_KINDS
};

struct compactsnoop_event {
	struct event_head head;
	__u64 latency_ns;
	__u64 min, low, high, free;    /* pages, at the start */
	__u64 free_blocks[FREE_AREAS]; /* by order, at the start */
	__u64 migrate_scanned;         /* pages */
	__u64 free_scanned;
	__u64 migrated;
	struct task_id who;
	__u32 node;
	__s32 order; /* -1: the whole zone */
	__s32 status;
	__u32 kind;
	__u8 sync;
	__u8 pad[7];
	char zone[16];
};

#endif
