/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FUNCCOUNT_H
#define CORETAP_FUNCCOUNT_H

#include "lib/shared.h"

struct funccount_key {
	__u32 target;
};

struct funccount_counts {
	__u64 count;
};

#endif
