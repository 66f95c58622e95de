/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_WRITESYNC_H
#define CORETAP_WRITESYNC_H

#include "lib/core/shared.h"

struct writesync_key {
	struct file_id file;
	char comm[COMM_LEN];
	__u32 pid;
	__u32 mode;
};

/* The sum of the first three is all writes. */
struct writesync_counts {
	__u64 sync;
	__u64 dsync;
	__u64 regular;
	__u64 direct;
	__u64 bytes;
	__u64 named; /* 1: its path was sent */
};

#endif
