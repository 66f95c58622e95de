/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SYSCOUNT_H
#define CORETAP_SYSCOUNT_H

#include "lib/shared.h"

struct syscount_key {
	__u32 id; /* index of the call, or with --process the process */
	__u32 pad;
	char comm[COMM_LEN]; /* with --process */
};

struct syscount_counts {
	__u64 count;
	__u64 total_ns;
};

#endif
