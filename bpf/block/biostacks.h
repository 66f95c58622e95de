/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_BIOSTACKS_H
#define CORETAP_BIOSTACKS_H

#include "lib/core/shared.h"

struct biostacks_key {
	__u64 kernel_stack;
	__u64 user_stack;
	__u32 pid;
	__u32 disk;
	char comm[COMM_LEN];
};

#endif
