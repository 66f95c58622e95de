/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SHMSNOOP_H
#define CORETAP_SHMSNOOP_H

#include "lib/core/shared.h"

enum shmsnoop_call { SHMSNOOP_GET, SHMSNOOP_AT, SHMSNOOP_DT, SHMSNOOP_CTL, SHMSNOOP_CALLS };

struct shmsnoop_event {
	struct event_head head;
	struct task_id who;
	__u64 latency_ns;
	__u64 args[3];
	__s64 ret;
	__u32 call;
	__u32 pad;
};

#endif
