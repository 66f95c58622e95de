/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TCPCONNECT_H
#define CORETAP_TCPCONNECT_H

#include "lib/net/flow.h"

struct tcpconnect_event {
	struct event_head head; /* time of the attempt; with --failed of its end */
	struct flow flow;
	struct task_id owner;
	__u32 error; /* with --failed; 0: not known */
	__u32 pad;
};

/* With --count, for each flow. */
struct tcpconnect_count {
	__u64 connects;
};

#endif
