/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FUTEXCTN_H
#define CORETAP_FUTEXCTN_H

#include "lib/core/shared.h"

/* Operations of futex(2) keep its numbers; the others are separate system calls. */
#define FUTEX_OP_WAITV 14
#define FUTEX_OP_WAIT2 15
#define FUTEX_OPS 16

enum futexctn_result {
	FUTEX_WOKEN,
	FUTEX_TIMED_OUT,
	FUTEX_INTERRUPTED,
	FUTEX_CHANGED, /* the value had already changed */
	FUTEX_FAILED,
	FUTEX_RESULTS
};

struct futexctn_key {
	__u64 lock;       /* address in user memory */
	__u64 user_stack; /* not in a summary */
	__u32 pid;
	__u32 tid; /* with --per-thread */
	__u32 op;
	__u32 result; /* not in a summary */
	char comm[COMM_LEN];
};

struct futexctn_sums {
	__u64 results[FUTEX_RESULTS];
	__u64 total_ns;
	struct extreme longest;
};

#endif
