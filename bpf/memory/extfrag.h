/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_EXTFRAG_H
#define CORETAP_EXTFRAG_H

#include "lib/core/shared.h"

/* Page frames from `first`, before `end`. */
struct pfn_range {
	__u64 first;
	__u64 end;
};

/* Maximum number of ranges for --node and --zone. */
#define ZONE_RANGES 64

/* An allocation without a free page of its migrate type, which took one of another type. */
struct extfrag_fallback {
	__u32 alloc_type; /* enum migratetype of this kernel */
	__u32 fallback_type;
	__u32 alloc_order;
	__u32 fallback_order; /* of the free block taken */
	__u8 fragmenting;
	__u8 change_ownership;
	__u8 pad[2];
};

struct extfrag_event {
	struct event_head head;
	__u64 pfn;
	struct task_id who;
	struct extfrag_fallback fallback;
	__u32 pageblock_order;
};

struct extfrag_key {
	struct extfrag_fallback fallback;
	__u32 pid; /* with --process */
	char comm[COMM_LEN];
};

struct extfrag_count {
	__u64 count;
};

#endif
