/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_READAHEAD_H
#define CORETAP_READAHEAD_H

#include "lib/core/shared.h"

/* In pages; only increase. One cache line per CPU. */
struct readahead_sums {
	__u64 read;    /* read ahead, and tracked */
	__u64 used;    /* of those, accessed since */
	__u64 dropped; /* of those, removed from the cache before */
	__u64 pad[5];
};

#endif
