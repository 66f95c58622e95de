/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TCPLIFE_H
#define CORETAP_TCPLIFE_H

#include "lib/net/flow.h"

struct tcplife_event {
	struct event_head head; /* the end of the session */
	struct flow flow;
	__u64 tx_bytes;
	__u64 rx_bytes;
	__u64 lasted_ns;
	struct task_id owner;
	__u8 has_begin; /* otherwise it is older than tracing */
	__u8 established;
	__u8 active; /* opened by this host */
	__u8 pad[5];
};

#endif
