/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What deadlock's programs and its loader agree on. */
#ifndef CORETAP_DEADLOCK_H
#define CORETAP_DEADLOCK_H

#include "lib/shared.h"

/* Mutexes that a thread holds at once, at most; more are counted as not tracked. */
#define DEADLOCK_HELD 16
/* Of them, those that an order is known to be guarded by. */
#define DEADLOCK_GUARDS 4

/* A mutex: what has the same address after it was destroyed is another one. */
struct deadlock_mutex {
	__u64 address;
	__u32 life;
	__u32 owner; /* process by its number in the first pid namespace */
};

/* A thread took, or wanted, the second one while it held the first one. */
struct deadlock_order {
	struct deadlock_mutex first, second;
};

enum deadlock_flags {
	DEADLOCK_TIMED = 1,   /* each time the second one was waited for with a time limit */
	DEADLOCK_SEVERAL = 2, /* more than one thread did that */
};

struct deadlock_seen {
	__u64 time_ns;     /* for the first time */
	__u64 stack_first; /* where the first one was taken, */
	__u64 stack_second;
	__u64 guards[DEADLOCK_GUARDS]; /* addresses of what was held besides, each time */
	__u32 pid;
	__u32 tid;
	__u32 flags;
	__u32 pad;
	char comm[COMM_LEN];
};

/* Who made a thread, by the thread's number as the loader's pid namespace shows it. */
struct deadlock_creator {
	__u64 stack;
	__u32 pid;
	__u32 tid;
	char comm[COMM_LEN];
};

#endif
