/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_EXECSNOOP_H
#define CORETAP_EXECSNOOP_H

#include "lib/shared.h"

enum execsnoop_what {
	EXECSNOOP_CUT = 1,     /* arguments beyond are missing */
	EXECSNOOP_NO_ARGS = 2, /* arguments could not be read */
	EXECSNOOP_QUOTE = 4,   /* as the user wants them shown */
};

struct execsnoop_event {
	struct event_head head;
	__u64 cgroup;
	__u32 pid;
	__u32 ppid;
	__u32 tid; /* before: a thread that runs a program becomes the process' first */
	__u32 uid;
	__s32 ret;
	__u32 max_args;
	__u32 what;
	struct text args; /* each with a terminator */
	struct text file;
	__u32 pad;
	char comm[COMM_LEN];
	char parent_comm[COMM_LEN];
};

#endif
