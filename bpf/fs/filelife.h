/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FILELIFE_H
#define CORETAP_FILELIFE_H

#include "lib/paths/given_path.h"

struct filelife_event {
	struct event_head head;
	__u64 age_ns;
	struct task_id who;
	struct file_id file;
	struct given_path path;
	__u32 call; /* enum removal_call */
	__u32 pad;
};

#endif
