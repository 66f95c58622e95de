/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_BIOPATTERN_H
#define CORETAP_BIOPATTERN_H

#include "lib/core/shared.h"

struct biopattern_key {
	__u32 disk;
	__u32 pad;
};

struct biopattern_value {
	__u64 ios;
	__u64 bytes;
	__u64 sequential; /* of ios; the first of a disk counts as neither */
	__u64 random;
};

#endif
