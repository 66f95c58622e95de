/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TCPDROP_H
#define CORETAP_TCPDROP_H

#include "lib/net/flow.h"

#define TCPDROP_REASONS 512 /* above any kernel's number; those of modules are much higher */

struct tcpdrop_event {
	struct event_head head;
	struct flow flow; /* local: source of sent packets, destination of received ones */
	struct task_id owner;
	__u64 location; /* address that frees the packet */
	__u32 reason;   /* enum skb_drop_reason; 0: not available in this kernel */
	__u8 received;
	__u8 whole; /* the TCP header was readable */
	__u8 flags; /* of the TCP header */
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
