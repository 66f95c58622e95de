/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SWAPOUT_H
#define CORETAP_SWAPOUT_H

#include "lib/core/shared.h"
#include "lib/mm/reclaim.h"

/* The process that has the page mapped. */
enum swapout_owner {
	SWAPOUT_ONE,
	SWAPOUT_SEVERAL, /* or too many mappings to look at */
	SWAPOUT_SHMEM,   /* shared memory and tmpfs */
	SWAPOUT_UNKNOWN, /* it has ended, or the kernel keeps no owners */
	SWAPOUT_OWNERS
};

struct swapout_key {
	__u64 cgroup; /* memory cgroup of the page; 0: none */
	__u32 pid;
	__u32 by_pid;
	char comm[COMM_LEN];
	char by_comm[COMM_LEN];
	__u32 owner;
	__u32 cause; /* enum reclaim_cause */
};

struct swapout_counts {
	__u64 count; /* of pages, large or small */
	__u64 bytes;
};

#endif
