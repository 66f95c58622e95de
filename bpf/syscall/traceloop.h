/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TRACELOOP_H
#define CORETAP_TRACELOOP_H

#include "lib/shared.h"

/* A process has ended in a way that was asked for. */
struct traceloop_end {
	struct event_head head;
	__u64 recorder;
	__u32 tgid;
	__u32 code; /* as wait(2) gives it */
	__u32 oom;  /* killed for lack of memory */
	__u32 pad;
	char comm[COMM_LEN];
};

#endif
