/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FUNCINTERVAL_H
#define CORETAP_FUNCINTERVAL_H

#include "lib/core/shared.h"

/* With --per-thread, each thread records the last calls of this many targets. */
#define FUNCINTERVAL_TARGETS 64

struct funcinterval_key {
	__u32 target;
};

#endif
