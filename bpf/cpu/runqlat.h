/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_RUNQLAT_H
#define CORETAP_RUNQLAT_H

#include "lib/shared.h"

/* Parts that are not asked for are 0. */
struct runqlat_key {
	__u32 pid;
	__u32 tid;
	__u32 pidns;
	__u32 pad;
	char comm[COMM_LEN];
};

#endif
