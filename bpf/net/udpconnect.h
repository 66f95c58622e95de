/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_UDPCONNECT_H
#define CORETAP_UDPCONNECT_H

#include "lib/net/flow.h"

struct udpconnect_event {
	struct event_head head;
	struct flow flow; /* of a failed call: with the requested remote end */
	struct task_id who;
	__s32 ret;
	__u32 protocol;
};

#endif
