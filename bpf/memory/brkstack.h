/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_BRKSTACK_H
#define CORETAP_BRKSTACK_H

#include "lib/core/shared.h"

struct brkstack_key {
	__u64 user_stack;
	__u32 pid;
	__u32 mapped; /* mmap, not brk */
	char comm[COMM_LEN];
};

struct brkstack_counts {
	__u64 grows, shrinks;
	__u64 grown_bytes, shrunk_bytes;
};

#endif
