/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_BUFGROW_H
#define CORETAP_BUFGROW_H

#include "lib/core/shared.h"

struct bufgrow_key {
	__u32 pid;
	__u32 disk; /* 0 without --disks */
	char comm[COMM_LEN];
};

/* In pages. */
struct bufgrow_counts {
	__u64 added;
	__u64 removed;
};

#endif
