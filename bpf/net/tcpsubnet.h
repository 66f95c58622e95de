/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TCPSUBNET_H
#define CORETAP_TCPSUBNET_H

#include "lib/net/flow.h"

#define TCPSUBNET_MOST 64 /* a power of two */

struct tcpsubnet_key {
	__u32 subnet; /* in the order of the command line */
};

struct tcpsubnet_value {
	__u64 sends;
	__u64 bytes;
};

/* One per CPU. */
struct tcpsubnet_slot {
	struct tcpsubnet_value of[TCPSUBNET_MOST];
};

#endif
