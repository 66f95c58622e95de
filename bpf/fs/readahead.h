/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_READAHEAD_H
#define CORETAP_READAHEAD_H

#include "lib/shared.h"

/* All in pages; they only grow. One per CPU, a cache line each. */
struct readahead_sums {
	__u64 read;    /* ahead, and tracked */
	__u64 used;    /* of those, wanted by somebody since */
	__u64 dropped; /* of those, taken out of the cache before */
	__u64 pad[5];
};

#endif
