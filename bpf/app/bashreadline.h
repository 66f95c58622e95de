/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_BASHREADLINE_H
#define CORETAP_BASHREADLINE_H

#include "lib/core/shared.h"

#define COMMAND_BYTES 4095 /* maximum length of a line */

/* The line follows. */
struct bashreadline_event {
	struct event_head head;
	struct task_id who;
	struct text command;
	__u32 pad;
};

#endif
