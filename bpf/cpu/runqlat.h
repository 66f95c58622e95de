/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_RUNQLAT_H
#define CORETAP_RUNQLAT_H

#include "lib/shared.h"

/* With --affinity: what a part of a wait is. */
enum wait_part {
	WAIT_WHOLE,
	WAIT_CPU_IDLE, /* some CPU was idle that the task may use */
	WAIT_CPUS_BUSY,
	WAIT_UNKNOWN,
};

/* Parts that are not asked for are 0. */
struct runqlat_key {
	__u32 pid;
	__u32 tid;
	__u32 pidns;
	__u32 part; /* enum wait_part */
	char comm[COMM_LEN];
};

#endif
