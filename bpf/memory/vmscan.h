/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_VMSCAN_H
#define CORETAP_VMSCAN_H

#include "lib/core/shared.h"

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

#endif
