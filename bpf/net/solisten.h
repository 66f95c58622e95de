/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SOLISTEN_H
#define CORETAP_SOLISTEN_H

#include "lib/net/flow.h"

struct solisten_event {
	struct event_head head;
	struct flow flow;
	struct task_id who;
	__s32 backlog;     /* as passed by the program */
	__u32 max_backlog; /* resulting value in the kernel */
	__s32 ret;
	__u32 protocol;
};

#endif
