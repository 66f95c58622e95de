/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_EXITSNOOP_H
#define CORETAP_EXITSNOOP_H

#include "lib/shared.h"

struct exitsnoop_event {
	struct event_head head;
	__u64 age_ns;
	__u64 max_rss; /* pages; of a process */
	struct task_id who;
	__u32 ppid;
	__u32 code;  /* as wait(2) has it */
	__u32 ended; /* the process; else only a thread */
	__u32 pad;
};

#endif
