/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_BIOLATENCY_H
#define CORETAP_BIOLATENCY_H

#include "lib/core/shared.h"

struct biolatency_key {
	__u32 disk;  /* 0: not requested */
	__u32 flags; /* operation and flags; 0: not requested */
};

#endif
