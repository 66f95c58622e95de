/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FFAULTS_H
#define CORETAP_FFAULTS_H

#include "lib/fault.h"

struct ffaults_key {
	struct area_id area;
	__u32 pid; /* 0 without --processes */
	__u32 pad;
	char comm[COMM_LEN];
};

struct ffaults_counts {
	__u64 minor, major;
	__u64 named; /* 1: its path was sent */
};

#endif
