/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FILE_FAULTS_H
#define CORETAP_FILE_FAULTS_H

#include "lib/mm/fault.h"

struct file_faults_key {
	struct area_id area;
	__u32 pid; /* 0 without --processes */
	__u32 pad;
	char comm[COMM_LEN];
};

struct file_faults_counts {
	__u64 minor, major;
	__u64 named; /* 1: its path was sent */
};

#endif
