/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_KSNOOP_H
#define CORETAP_KSNOOP_H

#include "lib/expression.h"

/* Memory that arguments and the result lead to follows. */
struct ksnoop_event {
	struct event_head head; /* the time of the entry */
	struct task_id who;
	__u64 target;
	__u64 latency_ns;
	__u32 cpu;      /* of the entry */
	__u32 returned; /* has it, and are latency and result known? */
	struct expression_out out;
};

#endif
