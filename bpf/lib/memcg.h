/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The memory cgroup of a task, whatever the version of its hierarchy. */
#ifndef CORETAP_MEMCG_H
#define CORETAP_MEMCG_H

#include "lib/shared.h"

#define MEMCG_PATH 512

struct memcg {
	__u64 id;    /* 0: there is none */
	__u64 limit; /* of the fullest one among it and those above, pages */
	__u32 path_bytes;
	__u32 path_cut;
	char path[MEMCG_PATH]; /* components, the last first, each with a terminator */
};

#endif
