/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_BIOSNOOP_H
#define CORETAP_BIOSNOOP_H

#include "lib/core/shared.h"

/* Position relative to the previous I/O on that disk; none, or not requested. */
enum biosnoop_pattern { BIOSNOOP_NO_PATTERN, BIOSNOOP_SEQUENTIAL, BIOSNOOP_RANDOM };

struct biosnoop_event {
	struct event_head head;
	__u64 latency_ns;
	__u64 queued_ns;
	__u64 sector;
	__u32 bytes;
	__u32 disk;
	__u32 flags;
	__s32 status; /* negative: errno; else a number of the block layer */
	__u32 pattern;
	__u32 queue_known;
	struct task_id owner;
};

#endif
