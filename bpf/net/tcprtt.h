/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TCPRTT_H
#define CORETAP_TCPRTT_H

#include "lib/net/flow.h"

struct tcprtt_key {
	__u8 local[16]; /* as in struct flow */
	__u8 remote[16];
	__u32 ip;
	__u32 pad;
};

#endif
