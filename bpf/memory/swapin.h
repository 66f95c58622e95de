/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SWAPIN_H
#define CORETAP_SWAPIN_H

#include "lib/core/shared.h"

struct swapin_key {
	char comm[COMM_LEN];
	__u32 pid;
	__u32 disk;
};

struct swapin_counts {
	__u64 count; /* number of faults that waited */
	__u64 total_ns;
	__u64 bytes;
	struct extreme longest;
};

#endif
