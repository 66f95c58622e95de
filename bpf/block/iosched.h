/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_IOSCHED_H
#define CORETAP_IOSCHED_H

#include "lib/core/shared.h"

struct iosched_key {
	char scheduler[16]; /* empty: none */
	__u32 disk;         /* 0: not requested */
	__u32 pad;
};

#endif
