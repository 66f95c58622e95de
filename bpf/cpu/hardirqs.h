/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_HARDIRQS_H
#define CORETAP_HARDIRQS_H

#include "lib/irq.h"
#include "lib/shared.h"

struct hardirqs_key {
	__u32 irq;
	__u32 cpu;
	char name[32];
};

struct hardirqs_value {
	__u64 count;
	__u64 spurious; /* the handler said that it was not its device */
	__u64 total_ns;
	struct extreme longest;
};

#endif
