/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_TCPCONG_H
#define CORETAP_TCPCONG_H

#include "lib/net/flow.h"

#define TCPCONG_STATES 5 /* enum tcp_ca_state; the same since 2.6.12 */

struct tcpcong_flow {
	struct flow flow;
	char algorithm[16]; /* of congestion control */
};

struct tcpcong_times {
	__u64 changes;
	__u64 ns[TCPCONG_STATES]; /* without the current state */
	__u64 since;              /* start of the current state */
	__u64 state;              /* its number plus 1; 0: the connection has ended */
	struct extreme window;    /* in packets, at the last change of the interval */
	struct extreme threshold; /* of slow start */
};

struct tcpcong_key {
	__u32 state;
};

#endif
