/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_THREADSNOOP_H
#define CORETAP_THREADSNOOP_H

#include "lib/core/shared.h"

struct threadsnoop_event {
	struct event_head head;
	struct task_id who; /* the creating task */
	struct user_code routine;
	__u32 thread; /* the created one */
	__u32 pad;
};

#endif
