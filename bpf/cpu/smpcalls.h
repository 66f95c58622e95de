/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SMPCALLS_H
#define CORETAP_SMPCALLS_H

#include "lib/core/shared.h"

/* Members not requested are 0. */
struct smpcalls_key {
	__u64 function;
	__u64 kernel_stack; /* of the caller */
	__u32 pid;
	__u32 pad;
	char comm[COMM_LEN];
};

struct smpcalls_value {
	__u64 count;
	__u64 timed;
	__u64 total_ns; /* of the timed ones */
	__u64 run_ns;   /* the part in the function itself */
	struct extreme longest;
};

#endif
