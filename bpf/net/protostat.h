/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_PROTOSTAT_H
#define CORETAP_PROTOSTAT_H

#include "lib/core/shared.h"
#include "lib/net/retransmit.h"

enum protostat_counter {
	PROTOSTAT_SEGS_IN,
	PROTOSTAT_SEGS_OUT,
	PROTOSTAT_UDP_IN,
	PROTOSTAT_UDP_OUT,
	PROTOSTAT_OUT_OF_ORDER,
	PROTOSTAT_DSACKS,
	PROTOSTAT_REORDERINGS,
	/* Drops at a socket, by the kind of the socket. */
	PROTOSTAT_TCP_DROPS,
	PROTOSTAT_LISTEN_DROPS,
	PROTOSTAT_UDP_DROPS,
	PROTOSTAT_ACTIVE_OPENS,
	PROTOSTAT_PASSIVE_OPENS,
	PROTOSTAT_FAILED,
	PROTOSTAT_ESTABLISHED_RESETS,
	PROTOSTAT_RESETS_IN,
	PROTOSTAT_RESETS_OUT,
	PROTOSTAT_RETRANSMITS, /* as many as there are causes */
	PROTOSTAT_EVENTS = PROTOSTAT_RETRANSMITS + RETRANSMIT_CAUSES,
	/* Segments that are counted above, too. */
	PROTOSTAT_DATA_SEGS_IN = PROTOSTAT_EVENTS,
	PROTOSTAT_DATA_SEGS_OUT,
	PROTOSTAT_COUNTERS
};

struct protostat_key {
	struct task_id who; /* a process; not known: only the cgroup, if that is not 0 */
	__u32 netns;        /* 0: not known */
	__u32 pad;
};

struct protostat_value {
	__u64 count[PROTOSTAT_COUNTERS];
};

#endif
