/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_KSNOOP_H
#define CORETAP_KSNOOP_H

#include "lib/targets/expression.h"

/* Followed by the memory that arguments and the result point to. */
struct ksnoop_event {
	struct event_head head; /* time of the entry */
	struct task_id who;
	__u64 target;
	__u64 latency_ns;
	__u32 cpu;      /* at the entry */
	__u32 returned; /* true if the call returned, with latency and result */
	struct expression_out out;
};

#endif
