/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_IRQSLOWER_H
#define CORETAP_IRQSLOWER_H

#include "lib/sched/irq.h"
#include "lib/core/shared.h"

struct irqslower_event {
	struct event_head head;
	__u64 latency_ns;
	struct task_id who; /* the interrupted task */
	__u32 irq;
	__u32 cpu;
	__u32 spurious; /* the handler found that its device did not interrupt */
	__u32 pad;
	char name[32];
};

#endif
