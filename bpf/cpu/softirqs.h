/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SOFTIRQS_H
#define CORETAP_SOFTIRQS_H

#include "lib/sched/irq.h"
#include "lib/core/shared.h"

struct softirqs_key {
	__u32 vector;
	__u32 cpu;
};

struct softirqs_value {
	__u64 count;
	__u64 total_ns;
	__u64 irq_ns; /* of nested hardware interrupts; not in total_ns */
	struct extreme longest;
};

#endif
