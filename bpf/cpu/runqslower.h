/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_RUNQSLOWER_H
#define CORETAP_RUNQSLOWER_H

#include "lib/core/shared.h"

#define NOT_KNOWN (~0ULL)

struct runqslower_event {
	struct event_head head;
	__u64 latency_ns;
	__u64 idle_ns;    /* part of the wait with an idle CPU that the task may use; NOT_KNOWN */
	__u64 warm_ns;    /* of this, while its caches counted as warm */
	__u64 quota_ns;   /* part in which its cgroup had used its quota */
	__u64 longest_ns; /* part of the wait in which this task ran; 0: not known */
	struct task_id who;
	__u32 cpu;
	__u32 longest_tid;
	__u32 previous_tid;
	__u32 previous_known;
	char longest_comm[COMM_LEN];
	char previous_comm[COMM_LEN];
};

#endif
