/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_MMAPFILES_H
#define CORETAP_MMAPFILES_H

#include "lib/core/shared.h"

struct mmapfiles_key {
	struct file_id file;
	__u32 mode;
	__u32 pid; /* 0 without --processes */
	char comm[COMM_LEN];
};

struct mmapfiles_counts {
	__u64 maps;
	__u64 executable; /* of them */
	__u64 writing;    /* shared and writable: writes go to the file */
	__u64 bytes;
	__u64 named; /* 1: its path was sent */
};

#endif
