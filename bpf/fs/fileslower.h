/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FILESLOWER_H
#define CORETAP_FILESLOWER_H

#include "lib/core/shared.h"

struct fileslower_event {
	struct event_head head;
	struct task_id who;
	struct file_id file;
	__u64 latency_ns;
	__s64 result;
	__u32 mode;
	__u32 write;
	__u32 path_kind; /* enum path_kind */
	struct text path;
};

#endif
