/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_RUNQLEN_H
#define CORETAP_RUNQLEN_H

#include "lib/core/shared.h"

struct runqlen_key {
	__u32 cpu;
	__u32 pad;
};

#endif
