/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by memleak's programs and its loader. */
#ifndef CORETAP_MEMLEAK_H
#define CORETAP_MEMLEAK_H

#include "lib/core/shared.h"

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
	MEMLEAK_FREE, /* this and later ones free memory */
	MEMLEAK_MUNMAP,
	MEMLEAK_KFREE,
	MEMLEAK_KMEM_CACHE_FREE,
	MEMLEAK_PAGE_FREE,
	MEMLEAK_PERCPU_FREE,
	MEMLEAK_FUNCTIONS
};

/* An outstanding allocation: not freed yet. */
struct alloc_key {
	__u64 address;
	__u32 owner; /* tgid in the initial pid namespace; 0: the kernel */
	__u32 pad;
};

struct alloc_info {
	__u64 bytes;
	__u64 time_ns; /* when it was allocated */
	__u64 stack;   /* key in `stacks`: the user stack, or the kernel stack for kernel memory */
	__u32 tgid;    /* allocating process, in the loader's pid namespace */
	__u32 mapping; /* by mmap: may be unmapped in parts */
	char comm[COMM_LEN];
};

/* Sums of all outstanding allocations of one owner from one stack. */
struct alloc_site {
	__u64 stack;
	__u32 owner;
	__u32 pad;
};

struct alloc_sum {
	__u64 bytes;
	__u64 count;
	__u64 newest_ns;
	__u32 tgid;
	__u32 pad;
	char comm[COMM_LEN];
};

enum alloc_note_kind {
	ALLOC_OWNER_EXITED, /* a process has exited */
	ALLOC_OWNER_EXECED, /* a process executes another program */
	ALLOC_UNMAPPED,     /* an unmapped range, which may not be one whole mapping */
};

struct alloc_note {
	__u64 time_ns;
	__u64 address; /* for ALLOC_UNMAPPED */
	__u64 bytes;
	__u32 owner;
	__u32 tgid; /* in the loader's pid namespace */
	__u32 kind;
	__u32 pad;
};

/* One call, with --trace. */
struct memleak_event {
	struct event_head head;
	__u64 address; /* 0: the allocation failed */
	__u64 old;     /* the block passed to realloc() or mremap() */
	__u64 bytes;
	struct task_id who;
	__u32 function;
	__u32 sized; /* whether `bytes` is valid */
};

#endif
