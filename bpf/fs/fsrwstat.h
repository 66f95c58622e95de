/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FSRWSTAT_H
#define CORETAP_FSRWSTAT_H

#include "lib/fs/file_counts.h"

struct fsrwstat_key {
	__u64 type; /* the address of the kernel's file_system_type */
};

#endif
