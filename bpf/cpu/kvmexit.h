/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_KVMEXIT_H
#define CORETAP_KVMEXIT_H

#include "lib/core/shared.h"

struct kvmexit_key {
	__u32 pid;
	__u32 tid; /* 0: all threads of the process */
	__u32 vcpu;
	__u32 isa; /* 1: Intel's reasons, 2: AMD's */
	__u32 reason;
	__u32 pad;
};

struct kvmexit_sums {
	__u64 count;
	__u64 timed; /* those with known time */
	__u64 total_ns;
	struct extreme longest;
};

#endif
