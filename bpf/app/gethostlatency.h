/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_GETHOSTLATENCY_H
#define CORETAP_GETHOSTLATENCY_H

#include "lib/shared.h"

/* The longest name of the DNS has 253 bytes. */
#define HOST_BYTES 256

enum gethostlatency_function {
	GETADDRINFO,
	GETHOSTBYNAME,
	GETHOSTBYNAME2,
	GETHOSTBYNAME_R,
	GETHOSTBYNAME2_R,
	GETHOST_FUNCTIONS
};

/* The host's name follows. */
struct gethostlatency_event {
	struct event_head head;
	__u64 latency_ns;
	struct task_id who;
	__s32 result; /* what was returned; for those that return a pointer -1 if it was NULL */
	__u8 function;
	__u8 failed;
	__u8 named; /* else the call was without a name, or it could not be read */
	__u8 pad[5];
	struct text host;
};

#endif
