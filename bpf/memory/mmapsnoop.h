/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_MMAPSNOOP_H
#define CORETAP_MMAPSNOOP_H

#include "lib/core/shared.h"

struct mmapsnoop_event {
	struct event_head head;
	struct task_id who;
	struct file_id file;
	__u64 address; /* requested address; 0: any */
	__u64 bytes, offset;
	__u64 prot, flags;
	__s64 ret;
	__u32 mode;      /* of the file; 0: none */
	__u32 path_kind; /* enum path_kind */
	struct text path;
	__u32 pad;
};

#endif
