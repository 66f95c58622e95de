/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_ICSTAT_H
#define CORETAP_ICSTAT_H

#include "lib/core/shared.h"

/* One cache line per CPU. */
struct icstat_sums {
	__u64 lookups;
	__u64 misses; /* of them */
	__u64 pad[6];
};

#endif
