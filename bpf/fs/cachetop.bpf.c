// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cachetop: hits and misses of the page cache by process. */
#include "lib/aggregate.bpf.h"
#include "lib/task.bpf.h"
#include "fs/cachetop.h"

TABLE(pages, struct cachetop_key, struct page_cache_sums)

inline_ struct page_cache_sums *current_row(void)
{
	struct cachetop_key key = { .pid = current_tgid(), .uid = (u32)bpf_get_current_uid_gid() };

	bpf_get_current_comm(key.comm, sizeof(key.comm));
	return pages_row(&key);
}

#define PAGE_CACHE_ADD(counter, n)                               \
	do {                                                     \
		struct page_cache_sums *row_ = current_row();    \
		if (row_)                                        \
			__sync_fetch_and_add(&row_->counter, n); \
	} while (0)

#include "lib/page_cache.bpf.h"
