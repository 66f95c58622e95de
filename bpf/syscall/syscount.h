/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SYSCOUNT_H
#define CORETAP_SYSCOUNT_H

#include "lib/core/shared.h"

/* The memory that holds the instruction of a call. */
enum syscount_object {
	SYSCOUNT_NO_OBJECT, /* not requested */
	SYSCOUNT_FILE,
	SYSCOUNT_VDSO,
	SYSCOUNT_ANONYMOUS,
	SYSCOUNT_UNKNOWN, /* not found, or the call began before tracing */
	SYSCOUNT_OBJECTS
};

struct syscount_key {
	__u32 call; /* its index; not with only --process */
	__u32 pid;  /* pid and comm: with --process */
	char comm[COMM_LEN];
	__u32 bucket;        /* of the time, with --spread (lib/aggregate/percentile.bpf.h) */
	__u32 object;        /* enum syscount_object */
	struct file_id file; /* zeros, except for SYSCOUNT_FILE */
};

#define SYSCOUNT_PERCENTILES 3

/* All but the count only with --latency. */
struct syscount_counts {
	__u64 count;
	__u64 total_ns;
	__u64 errors;
	struct extreme longest;
	struct extreme shortest;                 /* SYSCOUNT_MOST_NS minus the time */
	__u64 percentiles[SYSCOUNT_PERCENTILES]; /* filled in by the loader */
};

#define SYSCOUNT_MOST_NS ((1ULL << EXTREME_BITS) - 1)

#endif
