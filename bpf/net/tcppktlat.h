/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TCPPKTLAT_H
#define CORETAP_TCPPKTLAT_H

#include "lib/net/flow.h"

struct tcppktlat_event {
	struct event_head head; /* time when the data is read */
	struct flow flow;
	__u64 latency_ns; /* since TCP received it */
	__u64 softirq_ns; /* before that; 0: not known */
	struct task_id who;
};

enum tcppktlat_part {
	TCPPKTLAT_READER,
	TCPPKTLAT_SOFTIRQ,
};

struct tcppktlat_key {
	__u32 part; /* enum tcppktlat_part */
	__u32 pad;
};

#endif
