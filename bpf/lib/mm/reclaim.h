/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Causes of reclaim, for programs and loaders. */
#ifndef CORETAP_RECLAIM_H
#define CORETAP_RECLAIM_H

enum reclaim_cause {
	RECLAIM_DIRECT, /* a task that found no free memory */
	RECLAIM_KSWAPD,
	RECLAIM_MEMCG, /* the limit of a memory cgroup, or a write to its memory.reclaim */
	RECLAIM_OTHER, /* such as that of a NUMA node, madvise(2), or what began before tracing */
	RECLAIM_CAUSES
};

#endif
