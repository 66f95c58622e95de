/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TCPTOP_H
#define CORETAP_TCPTOP_H

#include "lib/net/flow.h"

struct tcptop_key {
	struct flow flow;
	char comm[COMM_LEN]; /* of the process */
	__u32 pid;
	__u32 uid;
};

struct tcptop_value {
	__u64 sends;
	__u64 receives;
	__u64 tx_bytes;
	__u64 rx_bytes;
};

#endif
