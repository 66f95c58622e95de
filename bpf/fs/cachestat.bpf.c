// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cachestat: hits and misses of the page cache. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/fs/page_cache.bpf.h"

SUMS(pages, struct page_cache_sums)

inline_ struct page_cache_sums *page_cache_slot(void)
{
	return pages_slot();
}
