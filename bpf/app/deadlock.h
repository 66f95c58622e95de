/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by deadlock's programs and its loader. */
#ifndef CORETAP_DEADLOCK_H
#define CORETAP_DEADLOCK_H

#include "lib/core/shared.h"

/* Maximum number of mutexes that a thread holds at once; more are counted as not tracked. */
#define DEADLOCK_HELD 16
/* Maximum number of those recorded as guards of an order. */
#define DEADLOCK_GUARDS 4

/* A mutex: the address may be reused after it was destroyed; `life` distinguishes these. */
struct deadlock_mutex {
	__u64 address;
	__u32 life;
	__u32 owner; /* tgid in the initial pid namespace */
};

/* A thread took, or tried to take, the second mutex while it held the first. */
struct deadlock_order {
	struct deadlock_mutex first, second;
};

enum deadlock_flags {
	DEADLOCK_TIMED = 1,   /* every wait for the second had a time limit */
	DEADLOCK_SEVERAL = 2, /* seen in more than one thread */
};

struct deadlock_seen {
	__u64 time_ns;     /* first occurrence */
	__u64 stack_first; /* where the first mutex was taken */
	__u64 stack_second;
	__u64 guards[DEADLOCK_GUARDS]; /* addresses of mutexes that were also held, every time */
	__u32 pid;
	__u32 tid;
	__u32 flags;
	__u32 pad;
	char comm[COMM_LEN];
};

/* The creator of a thread; keyed by the thread's id in the loader's pid namespace. */
struct deadlock_creator {
	__u64 stack;
	__u32 pid;
	__u32 tid;
	char comm[COMM_LEN];
};

#endif
