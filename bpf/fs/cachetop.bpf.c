// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cachetop: hits and misses of the page cache by process. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/task.bpf.h"
#include "lib/fs/page_cache.bpf.h"
#include "fs/cachetop.h"

TABLE(pages, struct cachetop_key, struct page_cache_sums)

inline_ struct page_cache_sums *page_cache_slot(void)
{
	struct cachetop_key key = { .pid = current_tgid(), .uid = (u32)bpf_get_current_uid_gid() };

	bpf_get_current_comm(key.comm, sizeof(key.comm));
	return pages_row(&key);
}
