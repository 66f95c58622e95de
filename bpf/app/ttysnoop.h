/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TTYSNOOP_H
#define CORETAP_TTYSNOOP_H

#include "lib/core/shared.h"

#define TTYSNOOP_PART 4096 /* maximum bytes of a record */
#define TTYSNOOP_PARTS 256 /* maximum records of a call */

struct ttysnoop_event {
	struct event_head head;
	struct task_id who;
	struct text data;
	__u32 part;     /* index in the call, from 0 */
	__u32 terminal; /* device number in the kernel's encoding */
	__u32 pad;
};

#endif
