/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FORKSNOOP_H
#define CORETAP_FORKSNOOP_H

#include "lib/core/shared.h"

struct forksnoop_event {
	struct event_head head;
	struct task_id who;   /* the creator */
	struct task_id child; /* still with its creator's name */
	__u64 flags;          /* CLONE_*, without the exit signal */
	__u32 ppid;           /* parent of the creator */
	__u32 child_ppid;     /* not the creator with CLONE_PARENT */
	__u32 pid_namespace;  /* the child is the first process of its pid namespace */
	__u32 pad;
};

#endif
