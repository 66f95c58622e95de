/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory zones: the loader sets their ranges, and the size of page blocks. */
#ifndef CORETAP_ZONE_BPF_H
#define CORETAP_ZONE_BPF_H

#include "lib/core/coretap.bpf.h"
#include "memory/extfrag.h"

OPT(__u32, pageblock_order); /* blocks of 2^this pages have one migrate type */

/* --node and --zone */
OPT(__u32, filter_pfn_count); /* 0: all memory */
const volatile struct pfn_range filter_pfns[ZONE_RANGES] = {};

inline_ bool keep_pfn(u64 pfn)
{
	if (!filter_pfn_count)
		return true;
	for (u32 i = 0; i < ZONE_RANGES && i < filter_pfn_count; i++)
		if (pfn >= filter_pfns[i].first && pfn < filter_pfns[i].end)
			return true;
	return filtered();
}

#endif
