/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads and writes that a row of a table counts (bpf/lib/fs/file_counts.bpf.h). */
#ifndef CORETAP_FILE_COUNTS_H
#define CORETAP_FILE_COUNTS_H

#include "lib/core/shared.h"

struct file_counts {
	__u64 reads;
	__u64 writes;
	__u64 read_bytes;
	__u64 write_bytes;
	__u64 named; /* 1: the text of the row was sent */
};

#endif
