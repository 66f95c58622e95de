/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FILEGONE_H
#define CORETAP_FILEGONE_H

#include "lib/paths/given_path.h"

#define FILEGONE_EXCHANGE 2 /* RENAME_EXCHANGE */

struct filegone_event {
	struct event_head head;
	__u64 latency_ns;
	struct task_id who;
	struct given_path path;
	struct given_path to;
	__s32 ret;
	__u32 call; /* enum removal_call */
	__u32 flags;
	__u32 pad;
};

#endif
