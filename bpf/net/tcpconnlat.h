/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TCPCONNLAT_H
#define CORETAP_TCPCONNLAT_H

#include "lib/net/flow.h"

struct tcpconnlat_event {
	struct event_head head; /* time of the attempt's end */
	struct flow flow;
	__u64 latency_ns;
	struct task_id owner;
	__u32 error; /* with --failed; 0: not known */
	__u32 pad;
};

#endif
