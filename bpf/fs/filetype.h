/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FILETYPE_H
#define CORETAP_FILETYPE_H

#include "lib/fs/file_counts.h"

struct filetype_key {
	__u32 pid;
	__u32 mode; /* only the type; 0: none */
	char comm[COMM_LEN];
};

#endif
