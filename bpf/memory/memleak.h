/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What memleak's programs hand over with --trace. */
#ifndef CORETAP_MEMLEAK_H
#define CORETAP_MEMLEAK_H

#include "lib/shared.h"

enum memleak_function {
	MEMLEAK_MALLOC,
	MEMLEAK_CALLOC,
	MEMLEAK_REALLOC,
	MEMLEAK_REALLOCARRAY,
	MEMLEAK_POSIX_MEMALIGN,
	MEMLEAK_ALIGNED_ALLOC,
	MEMLEAK_VALLOC,
	MEMLEAK_MEMALIGN,
	MEMLEAK_PVALLOC,
	MEMLEAK_MMAP,
	MEMLEAK_MREMAP,
	MEMLEAK_KMALLOC,
	MEMLEAK_KMEM_CACHE_ALLOC,
	MEMLEAK_PAGE_ALLOC,
	MEMLEAK_PERCPU_ALLOC,
	MEMLEAK_FREE, /* this one and those behind it give back */
	MEMLEAK_MUNMAP,
	MEMLEAK_KFREE,
	MEMLEAK_KMEM_CACHE_FREE,
	MEMLEAK_PAGE_FREE,
	MEMLEAK_PERCPU_FREE,
	MEMLEAK_FUNCTIONS
};

struct memleak_event {
	struct event_head head;
	__u64 address; /* 0: the allocation failed */
	__u64 old;     /* the block that realloc() or mremap() was given */
	__u64 bytes;
	struct task_id who;
	__u32 function;
	__u32 sized; /* whether bytes says anything */
};

#endif
