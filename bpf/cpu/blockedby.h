/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_BLOCKEDBY_H
#define CORETAP_BLOCKEDBY_H

#include "cpu/blocked_kinds.h"
#include "lib/sched/wait_facts.h"
#include "lib/core/shared.h"

enum blocked_by {
	BLOCKED_BY_UNKNOWN,
	BLOCKED_BY_OWNER, /* it held the object */
	BLOCKED_BY_WAKER, /* it ended the wait */
};

struct blockedby_key {
	struct stack_party waiter, owner;
	__u64 object; /* its address, or number of the inode */
	__u64 next;   /* the row of the owner's own wait meanwhile; 0: it mostly did not wait */
	__u64 witness;
	__u32 kind;
	__u32 by;
	__u64 wanted; /* by the filters; others are of owners */
};

struct blockedby_row {
	__u64 total_ns;
	__u64 count;
	__u64 longest_ns;
	struct blockedby_key key;
};

#define BLOCKED_ARGS 4

/* A blocked task, for --now. */
struct blocked_task {
	struct task_id who;
	__u64 in_state_ns; /* 0: not known */
	__u64 witness;
	__u64 object; /* kernel lock that it waits for; 0: none, or not known */
	__u64 args[BLOCKED_ARGS];
	__u32 kind;
	__u32 state;                /* 'D': uninterruptible; 0: another sleep */
	__u32 owner_pid, owner_tid; /* of the kernel lock; 0: not known */
	__u32 own_tid, own_pid;     /* its numbers in its own pid namespace */
	__u32 wanted;               /* by the filters */
	__u32 pad;
	struct stack stack;
};

#endif
