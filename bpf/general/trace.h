/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TRACE_H
#define CORETAP_TRACE_H

#include "lib/targets/expression.h"

/* Followed by a struct stack (with --kernel-stack), a struct expression_out and its text. */
struct trace_event {
	struct event_head head;
	struct task_id who;
	__u64 user_stack; /* key in `stacks` */
	__u64 target;
	struct user_code code; /* process for symbols of %U; without an address */
	__u32 cpu;
	__u32 values_at; /* offset of the struct expression_out in the record */
};

#endif
