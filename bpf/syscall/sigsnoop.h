/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SIGSNOOP_H
#define CORETAP_SIGSNOOP_H

#include "lib/core/shared.h"

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

/* In `given`: the call does not name a process by pid. */
#define SIGSNOOP_BY_PIDFD (1LL << 32)

struct sigsnoop_event {
	struct event_head head;
	struct task_id who;    /* sender */
	struct task_id target; /* the first of several; not known: no signal was sent */
	__s64 given;           /* the process or group, as passed to the call */
	__u32 pidns, target_pidns;
	__u32 signal;
	__s32 code;    /* si_code, if a signal was sent */
	__u32 outcome; /* outcome of the first signal, TRACE_SIGNAL_* */
	__u32 sent;    /* number of receiving processes or threads */
	__s32 ret;
	__u32 call;
};

#endif
