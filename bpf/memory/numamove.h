/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_NUMAMOVE_H
#define CORETAP_NUMAMOVE_H

#include "lib/core/shared.h"

/* Only increase. One cache line per CPU. */
struct numamove_sums {
	__u64 migrations;
	__u64 timed; /* those with a known start */
	__u64 time_ns;
	__u64 moved; /* pages */
	__u64 failed;
	__u64 pad[3];
};

#endif
