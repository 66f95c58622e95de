/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TCPSTATES_H
#define CORETAP_TCPSTATES_H

#include "lib/net/flow.h"

struct tcpstates_event {
	struct event_head head;
	struct flow flow;
	__u64 socket;      /* its address */
	__u64 in_state_ns; /* in the old state; 0: not known */
	struct task_id owner;
	__u32 oldstate; /* TCP_* */
	__u32 newstate;
};

#endif
