/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FAULTS_H
#define CORETAP_FAULTS_H

#include "lib/mm/fault.h"

struct faults_key {
	struct area_id area; /* zeros without --files */
	__u32 pid;
	__u32 pad;
	char comm[COMM_LEN];
};

struct faults_counts {
	__u64 minor, major;
	__u64 named; /* 1: its path was sent */
};

#endif
