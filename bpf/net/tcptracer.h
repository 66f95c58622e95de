/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TCPTRACER_H
#define CORETAP_TCPTRACER_H

#include "lib/net/flow.h"

enum tcptracer_kind { TCPTRACER_CONNECT, TCPTRACER_ACCEPT, TCPTRACER_CLOSE, TCPTRACER_KINDS };

struct tcptracer_event {
	struct event_head head;
	struct flow flow;
	struct task_id owner;
	__u32 kind;
	__u32 pad;
};

#endif
