// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cachestat: hits and misses of the page cache. */
#include "lib/aggregate.bpf.h"
#include "lib/page_cache.h"

SUMS(pages, struct page_cache_sums)

#define PAGE_CACHE_ADD(counter, n) SUM_ADD(pages, counter, n)

#include "lib/page_cache.bpf.h"
