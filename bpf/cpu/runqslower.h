/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_RUNQSLOWER_H
#define CORETAP_RUNQSLOWER_H

#include "lib/shared.h"

#define NOT_KNOWN (~0ULL)

struct runqslower_event {
	struct event_head head;
	__u64 latency_ns;
	__u64 idle_ns;    /* of the wait, that a CPU was idle which the task may use; NOT_KNOWN */
	__u64 longest_ns; /* of the wait, that this task ran; 0: it is not known */
	struct task_id who;
	__u32 cpu;
	__u32 longest_tid;
	__u32 previous_tid;
	__u32 previous_known;
	char longest_comm[COMM_LEN];
	char previous_comm[COMM_LEN];
};

#endif
