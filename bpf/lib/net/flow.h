/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The two ends of a connection, as kernel programs report them. */
#ifndef CORETAP_FLOW_H
#define CORETAP_FLOW_H

#include "lib/core/shared.h"

struct flow {
	__u8 local[16]; /* IPv4: the first four bytes */
	__u8 remote[16];
	__u16 lport; /* host byte order */
	__u16 rport;
	__u32 ip; /* 4 or 6: the protocol on the wire, also for an IPv6 socket with mapped addresses
		   */
	__u32 netns; /* inode of /proc/PID/ns/net */
	__u32 pad;
};

/* Addresses with a common prefix: the key of the kernel's longest-prefix-match map. */
struct address_prefix {
	__u32 bits;
	__u8 address[16]; /* IPv4: mapped, ::ffff:192.0.2.1 */
};

#endif
