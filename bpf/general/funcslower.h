/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FUNCSLOWER_H
#define CORETAP_FUNCSLOWER_H

#include "lib/core/shared.h"

#define FUNCSLOWER_ARGUMENTS 6

struct funcslower_event {
	struct event_head head;
	struct task_id who;
	__u64 user_stack; /* key in `stacks` */
	__u64 latency_ns;
	__u64 result;
	__u64 arguments[FUNCSLOWER_ARGUMENTS]; /* at the function's entry */
	__u64 target;
	__u32 call; /* its index if it is a system call (CALLS), plus one; 0: it is not */
	__u32 pad;
};

/* How a call ended. */
enum funcslower_end {
	FUNCSLOWER_RETURNED,
	FUNCSLOWER_UNSEEN, /* its caller went on, but no return was seen: longjmp, an exception */
	FUNCSLOWER_EXEC,   /* exec replaced its program */
	FUNCSLOWER_EXITED, /* its thread ended */
	FUNCSLOWER_OPEN,   /* it had not ended when tracing did */
	FUNCSLOWER_ENDS
};

/* With --tree. */
struct funcslower_node {
	struct funcslower_event call; /* must be first */
	__u64 task;                   /* identifies the thread while it lives */
	__u64 tree;                   /* number of the outermost call, by thread */
	__u64 caller;                 /* when the call around it began; 0: not known */
	__u64 inner_ns;               /* time in traced calls that it made */
	__u64 hidden_ns;              /* the same for those of less than the minimum */
	__u32 hidden;                 /* their number, with the calls within them */
	__u8 depth;                   /* 0: an outermost call */
	__u8 end;                     /* enum funcslower_end */
	__u8 last;                    /* it is the last record of this tree */
	__u8 pad;
};

#endif
