/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_GETHOSTLATENCY_H
#define CORETAP_GETHOSTLATENCY_H

#include "lib/core/shared.h"

/* DNS names have at most 253 bytes. */
#define HOST_BYTES 256

enum gethostlatency_function {
	GETADDRINFO,
	GETHOSTBYNAME,
	GETHOSTBYNAME2,
	GETHOSTBYNAME_R,
	GETHOSTBYNAME2_R,
	GETHOST_FUNCTIONS
};

/* Followed by the host's name. */
struct gethostlatency_event {
	struct event_head head;
	__u64 latency_ns;
	struct task_id who;
	__s32 result; /* the return value; for functions that return a pointer, -1 if it was NULL */
	__u8 function;
	__u8 failed;
	__u8 named; /* otherwise the call was without a name, or it could not be read */
	__u8 pad[5];
	struct text host;
};

#endif
