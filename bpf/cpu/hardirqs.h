/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_HARDIRQS_H
#define CORETAP_HARDIRQS_H

#include "lib/sched/irq.h"
#include "lib/core/shared.h"

struct hardirqs_key {
	__u32 irq;
	__u32 cpu;
	char name[32];
};

struct hardirqs_value {
	__u64 count;
	__u64 spurious; /* runs whose handler found that its device did not interrupt */
	__u64 total_ns;
	struct extreme longest;
};

#endif
