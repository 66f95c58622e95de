/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_CPUWALK_H
#define CORETAP_CPUWALK_H

#include "lib/core/shared.h"

struct cpuwalk_key {
	__u32 number; /* of a CPU, or of a NUMA node */
	__u32 pad;
};

struct cpuwalk_value {
	__u64 stints;
	__u64 busy_ns;
};

#endif
