/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TCPDROP_H
#define CORETAP_TCPDROP_H

#include "lib/flow.h"

#define TCPDROP_REASONS 512 /* more than any kernel has; those of modules lie far above */

struct tcpdrop_event {
	struct event_head head;
	struct flow
		flow; /* local: the source of what is sent, the destination of what is received */
	struct task_id owner;
	__u64 location; /* that frees the packet */
	__u32 reason;   /* enum skb_drop_reason; 0: the kernel gives none */
	__u8 received;
	__u8 whole; /* the TCP header could be read */
	__u8 flags; /* of it */
	__u8 state; /* TCP_*; 0: no socket is known */
};

struct tcpdrop_key {
	__u64 location;
	__u64 kernel_stack;
	__u32 reason;
	__u32 pad;
};

struct tcpdrop_count {
	__u64 drops;
};

#endif
