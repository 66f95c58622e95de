/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TCPACCEPT_H
#define CORETAP_TCPACCEPT_H

#include "lib/net/flow.h"

struct tcpaccept_event {
	struct event_head head;
	struct flow flow;
	struct task_id who;
};

#endif
