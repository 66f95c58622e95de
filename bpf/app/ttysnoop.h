/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TTYSNOOP_H
#define CORETAP_TTYSNOOP_H

#include "lib/shared.h"

#define TTYSNOOP_PART 4096 /* bytes of a record at most */
#define TTYSNOOP_PARTS 256 /* records of a call at most */

struct ttysnoop_event {
	struct event_head head;
	struct task_id who;
	struct text data;
	__u32 part;     /* which of the call's, from 0 on */
	__u32 terminal; /* device number as the kernel writes it */
	__u32 pad;
};

#endif
