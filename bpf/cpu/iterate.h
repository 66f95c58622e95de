/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records of iterator programs over tasks. */
#ifndef CORETAP_ITERATE_H
#define CORETAP_ITERATE_H

#include "lib/core/shared.h"

struct task_kind {
	char state[8]; /* "R": runs or waits for a CPU, "D": uninterruptible */
	char comm[COMM_LEN];
	struct stack stack; /* kernel stack; only of a task that is not running */
};

struct task_row {
	struct task_kind kind;
	struct task_id who;
	__u64 in_state_ns; /* 0: not known */
	__u32 cpu;
	__u32 running;
};

#endif
