/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_NETQTOP_H
#define CORETAP_NETQTOP_H

#include "lib/core/shared.h"

#define NETQTOP_NAME 16
#define NETQTOP_SIZES 6

enum netqtop_direction {
	NETQTOP_TX,
	NETQTOP_RX,
};

struct netqtop_key {
	char name[NETQTOP_NAME]; /* of the interface */
	__u32 netns;
	__u32 ifindex;
	__u32 queue;
	__u32 queues; /* number of queues of the interface in this direction; 0: not known */
	__u32 direction;
	__u32 pad;
};

struct netqtop_value {
	__u64 packets;
	__u64 bytes;
	__u64 sizes[NETQTOP_SIZES]; /* packets of less than 64, 512, 2K, 16K, 64K bytes, others */
};

#endif
