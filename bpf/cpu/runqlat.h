/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_RUNQLAT_H
#define CORETAP_RUNQLAT_H

#include "lib/core/shared.h"

/* With --affinity: state of the allowed CPUs in this part of a wait. */
enum wait_part {
	WAIT_WHOLE,
	WAIT_CPU_IDLE, /* a CPU was idle that the task may use */
	WAIT_CPUS_BUSY,
	WAIT_UNKNOWN,
	WAIT_QUOTA,      /* its cgroup had used its quota */
	WAIT_CACHE_WARM, /* a CPU was idle, but its caches counted as warm where it was */
};

/* Members not requested are 0. */
struct runqlat_key {
	__u32 pid;
	__u32 tid;
	__u32 pidns;
	__u32 part; /* enum wait_part */
	char comm[COMM_LEN];
};

#endif
