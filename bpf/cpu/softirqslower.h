/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SOFTIRQSLOWER_H
#define CORETAP_SOFTIRQSLOWER_H

#include "lib/sched/irq.h"
#include "lib/core/shared.h"

enum softirqslower_stage {
	STAGE_NONE,
	STAGE_WAIT, /* from raising until it runs */
	STAGE_RUN,
};

struct softirqslower_event {
	struct event_head head;
	__u64 latency_ns;
	struct task_id who; /* the interrupted task, or ksoftirqd */
	__u32 stage;
	__u32 vector;
	__u32 cpu;
	__u32 raised_by; /* process running when it was raised; 0: an idle CPU, or not known */
	char raised_comm[COMM_LEN];
};

#endif
