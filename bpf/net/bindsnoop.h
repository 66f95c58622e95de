/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_BINDSNOOP_H
#define CORETAP_BINDSNOOP_H

#include "lib/net/flow.h"

enum bindsnoop_option {
	BINDSNOOP_FREEBIND = 1,
	BINDSNOOP_TRANSPARENT = 2,
	BINDSNOOP_NO_PORT = 4, /* IP_BIND_ADDRESS_NO_PORT */
	BINDSNOOP_REUSEADDR = 8,
	BINDSNOOP_REUSEPORT = 16,
};

struct bindsnoop_event {
	struct event_head head;
	struct flow flow; /* of a failed call: the requested address */
	struct task_id who;
	__s32 ret;
	__u32 protocol;
	__u32 options;
	__u32 interface; /* the index that the socket is bound to; 0: none */
};

/* With --count, for each address and port. */
struct bindsnoop_count {
	__u64 binds;
};

#endif
