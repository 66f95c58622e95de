/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_BIOERR_H
#define CORETAP_BIOERR_H

#include "lib/core/shared.h"

struct bioerr_event {
	struct event_head head;
	__u64 sector;
	__u32 bytes;
	__u32 disk;
	__u32 flags;
	__s32 status; /* negative: errno; else a number of the block layer */
	struct task_id owner;
};

#endif
