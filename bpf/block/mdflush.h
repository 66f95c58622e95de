/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_MDFLUSH_H
#define CORETAP_MDFLUSH_H

#include "lib/core/shared.h"

struct mdflush_event {
	struct event_head head;
	__u64 latency_ns; /* with --latency */
	__u32 disk;
	__u32 pad;
	struct task_id who;
};

#endif
