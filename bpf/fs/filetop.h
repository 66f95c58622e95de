/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FILETOP_H
#define CORETAP_FILETOP_H

#include "lib/fs/file_counts.h"

struct filetop_key {
	struct file_id file;
	__u32 pid;
	__u32 tid;
	__u32 mode;
	__u32 pad;
	char comm[COMM_LEN];
};

#endif
