/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_HFAULTS_H
#define CORETAP_HFAULTS_H

#include "lib/core/shared.h"

struct hfaults_key {
	__u32 pid;
	__u32 pad;
	char comm[COMM_LEN];
};

struct hfaults_counts {
	__u64 hugetlb, thp, fallbacks, collapses;
};

#endif
