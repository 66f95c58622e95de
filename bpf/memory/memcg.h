/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The memory cgroup of a task, for both versions of cgroups. */
#ifndef CORETAP_MEMCG_H
#define CORETAP_MEMCG_H

#include "lib/core/shared.h"

#define MEMCG_PATH 512

struct memcg {
	__u64 id;    /* 0: none */
	__u64 limit; /* in pages; of the fullest cgroup among it and its ancestors */
	__u32 path_bytes;
	__u32 path_cut;
	char path[MEMCG_PATH]; /* components, last first, each with a terminator */
};

#endif
