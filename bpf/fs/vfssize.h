/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_VFSSIZE_H
#define CORETAP_VFSSIZE_H

#include "lib/core/shared.h"

struct vfssize_key {
	char comm[COMM_LEN];
	struct file_id file;
	__u32 pid;
	__u16 mode;
	__u16 write;
};

#endif
