/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_MOUNTSNOOP_H
#define CORETAP_MOUNTSNOOP_H

#include "lib/core/shared.h"

enum mountsnoop_call {
	MOUNTSNOOP_MOUNT,
	MOUNTSNOOP_UMOUNT,
	MOUNTSNOOP_PIVOT_ROOT,
	MOUNTSNOOP_OPEN_TREE,
	MOUNTSNOOP_MOVE_MOUNT,
	MOUNTSNOOP_FSOPEN,
	MOUNTSNOOP_FSCONFIG,
	MOUNTSNOOP_FSMOUNT,
	MOUNTSNOOP_FSPICK,
	MOUNTSNOOP_MOUNT_SETATTR,
	MOUNTSNOOP_OPEN_TREE_ATTR,
	MOUNTSNOOP_CALLS
};

#define MOUNTSNOOP_ARGS 5

/* Arguments of mount_setattr() and open_tree_attr(). */
struct mountsnoop_attr {
	__u64 set;
	__u64 clear;
	__u64 propagation;
	__u64 userns_fd;
};

struct mountsnoop_event {
	struct event_head head;
	__u64 latency_ns;
	struct task_id who;
	__u64 args[MOUNTSNOOP_ARGS];
	struct mountsnoop_attr attr;
	__s64 ret;
	__u32 call;
	__u32 mount_ns;
	__u32 ppid;
	char pcomm[COMM_LEN];
	struct text text[MOUNTSNOOP_ARGS]; /* for string arguments */
	__u16 given;                       /* a bit for each that was readable */
	__u16 cut;                         /* ... and for each that is truncated */
	__u32 attr_given;
};

#endif
