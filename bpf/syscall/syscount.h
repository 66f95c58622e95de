/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SYSCOUNT_H
#define CORETAP_SYSCOUNT_H

#include "lib/core/shared.h"

struct syscount_key {
	__u32 call; /* its index; not with only --process */
	__u32 pid;  /* pid and comm: with --process */
	char comm[COMM_LEN];
};

struct syscount_counts {
	__u64 count;
	__u64 total_ns;
};

#endif
