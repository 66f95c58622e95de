/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SOLISTEN_H
#define CORETAP_SOLISTEN_H

#include "lib/flow.h"

struct solisten_event {
	struct event_head head;
	struct flow flow;
	struct task_id who;
	__s32 backlog;     /* as the program gave it */
	__u32 max_backlog; /* what came of it */
	__s32 ret;
	__u32 protocol;
};

#endif
