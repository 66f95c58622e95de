/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who submitted a block I/O, on both sides. */
#ifndef CORETAP_BLOCK_IO_H
#define CORETAP_BLOCK_IO_H

#include "lib/shared.h"

struct block_owner {
	__u64 cgroup;
	__u32 pid;
	__u32 tid;
	__u32 uid;
	__u32 known;
	char comm[COMM_LEN];
};

#endif
