/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TCPRETRANS_H
#define CORETAP_TCPRETRANS_H

#include "lib/net/flow.h"
#include "lib/net/retransmit.h"

enum tcpretrans_kind { TCPRETRANS_AGAIN, TCPRETRANS_PROBE, TCPRETRANS_SYNACK, TCPRETRANS_KINDS };

struct tcpretrans_event {
	struct event_head head;
	struct flow flow;
	struct task_id owner;
	__u32 kind;
	__u32 state; /* TCP_* */
	__u32 congestion;
	__u32 sequence;
	__u32 length;
	__u32 segments;
	__u32 cause; /* enum retransmit_cause */
	__u32 pad;
};

/* With --count, for each flow. */
struct tcpretrans_count {
	__u64 retransmits;
	__u64 bytes;
	__u64 causes[RETRANSMIT_CAUSES];
};

#endif
