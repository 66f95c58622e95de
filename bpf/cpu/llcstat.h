/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_LLCSTAT_H
#define CORETAP_LLCSTAT_H

#include "lib/core/shared.h"

struct llcstat_key {
	__u32 pid, tid, cpu, unused; /* tid: 0 without --tids */
	char comm[COMM_LEN];
};

struct llcstat_counts {
	__u64 samples, references, misses;
};

#endif
