/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TCPSYNBL_H
#define CORETAP_TCPSYNBL_H

#include "lib/net/flow.h"

struct tcpsynbl_key {
	__u64 backlog_max_1; /* plus 1: 0 is none */
	__u32 port;
	__u32 pad;
};

#endif
