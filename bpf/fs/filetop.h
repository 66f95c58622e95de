/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FILETOP_H
#define CORETAP_FILETOP_H

#include "lib/shared.h"

struct filetop_key {
	struct file_id file;
	__u32 pid;
	__u32 tid;
	__u32 mode;
	__u32 pad;
	char comm[COMM_LEN];
};

struct filetop_counts {
	__u64 reads;
	__u64 writes;
	__u64 read_bytes;
	__u64 write_bytes;
	__u64 named; /* 1: its path was sent */
};

#endif
