/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FSSLOWER_H
#define CORETAP_FSSLOWER_H

#include "lib/fs/fs_call.h"

struct fsslower_event {
	struct event_head head;
	struct task_id who;
	struct file_id file;
	struct fs_type type;
	__u64 latency_ns;
	__u64 offset; /* for reads and writes */
	__s64 result;
	__u32 operation; /* enum fs_operation */
	__u16 mode;
	__u16 path_kind; /* enum path_kind */
	struct text path;
	__u32 pad;
};

#endif
