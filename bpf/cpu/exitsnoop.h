/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_EXITSNOOP_H
#define CORETAP_EXITSNOOP_H

#include "lib/core/shared.h"

struct exitsnoop_event {
	struct event_head head;
	__u64 age_ns;
	__u64 max_rss; /* pages; of the process */
	struct task_id who;
	__u32 ppid;
	__u32 code;  /* as for wait(2) */
	__u32 ended; /* the process ended; else only a thread */
	__u32 pad;
};

#endif
