/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_DRSNOOP_H
#define CORETAP_DRSNOOP_H

#include "lib/core/shared.h"

enum drsnoop_kind { DRSNOOP_DIRECT, DRSNOOP_MEMCG, DRSNOOP_NODE, DRSNOOP_KINDS };

struct drsnoop_event {
	struct event_head head;
	__u64 latency_ns;
	__u64 reclaimed; /* pages */
	struct task_id who;
	__u32 gfp;
	__s32 order;
	__u32 node;
	__u32 kind;
};

#endif
