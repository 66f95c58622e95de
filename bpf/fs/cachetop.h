/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_CACHETOP_H
#define CORETAP_CACHETOP_H

#include "lib/fs/page_cache.h"

struct cachetop_key {
	__u32 pid;
	__u32 uid;
	char comm[COMM_LEN];
};

#endif
