/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_VMSCAN_H
#define CORETAP_VMSCAN_H

#include "lib/core/shared.h"
#include "lib/mm/reclaim.h"

enum vmscan_kind { VMSCAN_SLAB, VMSCAN_DIRECT, VMSCAN_MEMCG, VMSCAN_KINDS };

struct vmscan_key {
	__u32 kind;
	__u32 pad;
};

/* Only increase. Two cache lines per CPU. */
struct vmscan_sums {
	__u64 runs[VMSCAN_KINDS];
	__u64 kswapd_wakeups; /* requested */
	__u64 kswapd_runs;
	__u64 time_ns[VMSCAN_KINDS];
	__u64 freed[VMSCAN_KINDS]; /* pages; for VMSCAN_SLAB objects */
	__u64 kswapd_ns;           /* on a CPU */
	__u64 written;             /* pages */
	__u64 pad[3];
};

struct vmscan_pages_key {
	__u32 cause; /* enum reclaim_cause */
	__u32 file;  /* 0: anonymous and shared memory */
};

struct vmscan_pages {
	__u64 scanned;
	__u64 reclaimed;
	__u64 dirty; /* of those scanned */
	__u64 writeback;
};

#define SHRINKER_NAME 64

struct vmscan_shrinker_key {
	__u64 function;           /* that frees objects */
	char name[SHRINKER_NAME]; /* in debugfs; empty: this kernel has none */
};

struct vmscan_shrinker {
	__u64 runs;
	__u64 freed; /* objects */
	__u64 time_ns;
};

#endif
