/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_DBSLOWER_H
#define CORETAP_DBSLOWER_H

#include "lib/targets/database.h"
#include "lib/core/shared.h"

#define QUERY_SHORT 480 /* bytes of text kept per thread */
#define QUERY_MOST 32000

/* The query's text follows. */
struct dbslower_event {
	struct event_head head;
	__u64 latency_ns;
	struct task_id who;
	__u16 command;
	__u8 server;
	__u8 named; /* otherwise the text is not known */
	__u8 cut;
	__u8 pad[3];
	struct text text;
	__u32 pad2;
};

#endif
