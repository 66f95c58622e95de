/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_CPUFREQ_H
#define CORETAP_CPUFREQ_H

#include "lib/core/shared.h"

#define CPUFREQ_CPUS 8192 /* maximum of NR_CPUS */

struct cpufreq_key {
	__u32 syswide; /* sum over all tasks */
	__u32 pad;
	char comm[COMM_LEN];
};

#endif
