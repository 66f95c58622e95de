/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_DCSTAT_H
#define CORETAP_DCSTAT_H

#include "lib/core/shared.h"

/* Only increase. One per CPU, a cache line. */
struct dcstat_sums {
	__u64 refs;
	__u64 slow;   /* refs not answered by the cache */
	__u64 misses; /* names looked up in the file system */
	__u64 pad[5];
};

#endif
