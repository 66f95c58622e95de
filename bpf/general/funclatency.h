/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FUNCLATENCY_H
#define CORETAP_FUNCLATENCY_H

#include "lib/core/shared.h"

struct funclatency_key {
	__u32 target;
	__u32 pid;
};

#endif
