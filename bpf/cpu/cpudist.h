/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_CPUDIST_H
#define CORETAP_CPUDIST_H

#include "lib/core/shared.h"

/* How a task left its CPU; a stint in progress has no type. */
enum switch_type {
	SWITCH_ANY,
	SWITCH_VOLUNTARY, /* to wait */
	SWITCH_PREEMPTED, /* it was still runnable */
};

/* Members not requested are 0. */
struct cpudist_key {
	__u32 pid;
	__u32 tid;
	__u32 type; /* enum switch_type */
	char comm[COMM_LEN];
};

#endif
