/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_PAGE_CACHE_H
#define CORETAP_PAGE_CACHE_H

#include "lib/core/shared.h"

/* All in pages (bpf/lib/fs/page_cache.bpf.h); only increase. Fits a cache line. */
struct page_cache_sums {
	__u64 accessed;
	__u64 added; /* to the cache, for any reason */
	__u64 dirtied;
	__u64 written;  /* pages added by a write(): not a miss */
	__u64 missed;   /* accesses to pages that had to be read in */
	__u64 refaults; /* set by the loader */
	__u64 pad[2];
};

#endif
