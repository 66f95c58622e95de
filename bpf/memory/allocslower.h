/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_ALLOCSLOWER_H
#define CORETAP_ALLOCSLOWER_H

#include "lib/core/shared.h"

enum allocslower_kind {
	ALLOC_KSWAPD,  /* kswapd is woken */
	ALLOC_ASYNC,   /* direct compaction of a zone that does not wait */
	ALLOC_SYNC,    /* the same, which may wait */
	ALLOC_RECLAIM, /* direct reclaim */
	ALLOC_OOM,     /* a process is selected to be killed */
	ALLOC_KINDS
};

/* Results of compaction, as enum compact_result of every kernel has them. */
enum allocslower_result {
	ALLOC_RESULT_OTHER,
	ALLOC_SUCCESS,
	ALLOC_COMPLETE,
	ALLOC_PARTIAL_SKIPPED,
	ALLOC_CONTENDED,
	ALLOC_RESULTS
};

struct allocslower_step {
	__u64 ns;
	__u32 pages; /* reclaimed */
	__u8 kind;
	__u8 result;
	__u16 times; /* wakeups of kswapd that followed each other */
};

/* A power of two. Later steps are only in the sums. */
#define ALLOC_STEPS 32

struct allocslower_parts {
	__u64 reclaim_ns;
	__u64 reclaimed; /* pages */
	__u64 async_ns;
	__u64 sync_ns;
	__u32 reclaims;
	__u32 asyncs;
	__u32 syncs;
	__u32 wakeups;
	__u32 victims;
	__u32 steps; /* all, also those without room */
	struct allocslower_step step[ALLOC_STEPS];
};

struct allocslower_event {
	struct event_head head;
	__u64 total_ns;
	struct task_id who;
	__u32 gfp;
	__u32 order;
	__u32 failed;
	__u32 pad;
	struct allocslower_parts parts;
};

#endif
