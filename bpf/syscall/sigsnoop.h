/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SIGSNOOP_H
#define CORETAP_SIGSNOOP_H

#include "lib/shared.h"

enum sigsnoop_call {
	SIGSNOOP_NONE, /* a signal of any origin, not a call */
	SIGSNOOP_KILL,
	SIGSNOOP_TKILL,
	SIGSNOOP_TGKILL,
	SIGSNOOP_RT_SIGQUEUEINFO,
	SIGSNOOP_RT_TGSIGQUEUEINFO,
	SIGSNOOP_PIDFD_SEND_SIGNAL,
	SIGSNOOP_CALLS
};

/* In `given`: the call names no process by its number. */
#define SIGSNOOP_BY_PIDFD (1LL << 32)

struct sigsnoop_event {
	struct event_head head;
	struct task_id who;    /* sender */
	struct task_id target; /* of several the first one; not known: no signal was sent */
	__s64 given;           /* the process or the group, as the call has it */
	__u32 pidns, target_pidns;
	__u32 signal;
	__s32 code;    /* si_code, of a signal that was sent */
	__u32 outcome; /* what came of the first one, as the kernel has it */
	__u32 sent;    /* to how many processes or threads */
	__s32 ret;
	__u32 call;
};

#endif
