/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_COUNT_CALLS_H
#define CORETAP_COUNT_CALLS_H

#include "lib/core/shared.h"

struct count_calls_key {
	__u32 target;
};

struct count_calls_counts {
	__u64 count;
};

#endif
