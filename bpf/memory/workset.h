/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_WORKSET_H
#define CORETAP_WORKSET_H

#include "lib/core/shared.h"

struct workset_key {
	__u64 cgroup; /* memory cgroup whose limit evicted the pages */
	__u32 file;   /* 0: anonymous and shared memory */
	__u32 bucket; /* of the distance (lib/aggregate/percentile.bpf.h); not of histograms */
};

#define WORKSET_PERCENTILES 5

struct workset_pages {
	__u64 refaulted;
	__u64 percentiles[WORKSET_PERCENTILES]; /* filled in by the loader */
};

/* Refault distances are known modulo this many pages. */
#define WORKSET_DISTANCE_BITS 30

#endif
