/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FUNCSLOWER_H
#define CORETAP_FUNCSLOWER_H

#include "lib/core/shared.h"

#define FUNCSLOWER_ARGUMENTS 6

struct funcslower_event {
	struct event_head head;
	struct task_id who;
	__u64 user_stack; /* key in `stacks` */
	__u64 latency_ns;
	__u64 result;
	__u64 arguments[FUNCSLOWER_ARGUMENTS]; /* at the function's entry */
	__u64 target;
	__u32 call; /* its index if it is a system call (CALLS), plus one; 0: it is not */
	__u32 pad;
};

#endif
