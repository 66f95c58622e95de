/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_BIOTOP_H
#define CORETAP_BIOTOP_H

#include "lib/core/shared.h"

struct biotop_key {
	char comm[COMM_LEN]; /* of the submitter; empty: not known */
	__u32 pid;
	__u32 disk;
	__u32 flags; /* operation */
	__u32 pad;
};

struct biotop_value {
	__u64 ios;
	__u64 bytes;
	__u64 time_ns;
};

#endif
