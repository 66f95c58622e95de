/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_NUMASCHED_H
#define CORETAP_NUMASCHED_H

#include "lib/core/shared.h"

struct numasched_event {
	struct event_head head;
	struct task_id who;
	__u32 from_node, to_node;
	__u32 from_cpu, to_cpu;
	__u32 balancing; /* moved by NUMA balancing; else by the scheduler */
	__u32 pad;
};

#endif
