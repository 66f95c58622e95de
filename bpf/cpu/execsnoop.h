/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_EXECSNOOP_H
#define CORETAP_EXECSNOOP_H

#include "lib/core/shared.h"

enum execsnoop_what {
	EXECSNOOP_CUT = 1,     /* further arguments are missing */
	EXECSNOOP_NO_ARGS = 2, /* arguments could not be read */
	EXECSNOOP_QUOTE = 4,   /* show arguments with quotes */
};

struct execsnoop_event {
	struct event_head head;
	struct task_id who; /* tid: before exec, which makes the calling thread the first one */
	__u32 ppid;
	__s32 ret;
	__u32 max_args;
	__u32 what;
	struct text args; /* each with a terminator */
	struct text file;
	__u32 cpu;
	__u32 pad;
	char parent_comm[COMM_LEN];
};

#endif
