// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* workset: refault distances. */
#include "lib/aggregate/percentile.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/mm/mm.bpf.h"
#include "lib/mm/page_memcg.bpf.h"
#include "memory/workset.h"

OPT(bool, distributed);

TABLE(pages, struct workset_key, struct workset_pages)
HISTOGRAM(distances, struct workset_key)

/*
 * The kernel leaves a number in the place of an evicted page (pack_shadow() in mm/workingset.c).
 * From the lowest bit on: 1, whether the page was active, its node, the number of the memory cgroup
 * whose reclaim evicted it, and that one's age. All kernels leave at least WORKSET_DISTANCE_BITS of
 * the age.
 */
#define MEMCG_NUMBER_BITS 16

/* NODES_SHIFT, which is not in BTF; a list of zones has all zones of all possible nodes. */
inline_ u32 node_bits(void)
{
	struct zonelist *list = NULL;
	u32 zones = bpf_core_enum_value(enum zone_type, __MAX_NR_ZONES);
	u32 elements = bpf_core_field_size(list->_zonerefs) / bpf_core_type_size(struct zoneref);

	return log2_u64(elements / zones);
}

inline_ struct mem_cgroup *memcg_above(struct mem_cgroup *memcg)
{
	struct cgroup_subsys_state *css = BPF_CORE_READ(memcg, css.parent);

	return css ? (void *)css - bpf_core_field_offset(struct mem_cgroup, css) : NULL;
}

/*
 * The memory cgroup with this number. The reclaim that evicts a page is that of the page's own
 * cgroup or of one above it. NULL: it has been removed, or a task of another cgroup needs the page.
 */
inline_ struct mem_cgroup *memcg_with_number(struct mem_cgroup *memcg, u32 number)
{
	for (u32 i = 0; i < CGROUP_LEVELS && memcg; i++) {
		if ((u32)BPF_CORE_READ(memcg, id.id) == number)
			return memcg;
		memcg = memcg_above(memcg);
	}
	return NULL;
}

/* Pages that were evicted or activated so far. */
inline_ u64 age_of(struct mem_cgroup *memcg, u32 node)
{
	u64 nodes = (u64)memcg + bpf_core_field_offset(struct mem_cgroup, nodeinfo);
	struct mem_cgroup_per_node *per_node = NULL;

	bpf_probe_read_kernel(&per_node, sizeof(per_node), (void *)(nodes + node * sizeof(void *)));
	return BPF_CORE_READ(per_node, lruvec.nonresident_age.counter);
}

inline_ int refaulted(void *folio, u64 shadow)
{
	u64 swapbacked = 1ULL << bpf_core_enum_value(enum pageflags, PG_swapbacked);
	u64 mask = (1ULL << WORKSET_DISTANCE_BITS) - 1, pages, distance;
	u32 bits = node_bits(), node, number;
	struct workset_key key = {};
	struct workset_pages *row;
	struct mem_cgroup *memcg;
	struct hist *h;

	if (!keep_current())
		return 0;
	shadow >>= 2;
	node = shadow & ((1ULL << (bits & 31)) - 1);
	shadow >>= bits & 31;
	number = shadow & ((1 << MEMCG_NUMBER_BITS) - 1);
	memcg = memcg_with_number(memcg_of_page(folio), number);
	if (!memcg)
		return counted(LEDGER_UNMATCHED);
	distance = (age_of(memcg, node) - (shadow >> MEMCG_NUMBER_BITS)) & mask;
	pages = folio_pages(folio);
	key.cgroup = memcg_cgroup(memcg);
	key.file = !(folio_flags(folio) & swapbacked);
	if (distributed) {
		h = distances_keyed ? distances_row(&key) : distances_slot();
		if (h)
			hist_log2(h, distance * page_bytes, pages, distances_step);
		return 0;
	}
	key.bucket = fine_bucket(distance);
	row = pages_row(&key);
	if (row)
		__sync_fetch_and_add(&row->refaulted, pages);
	return 0;
}

/* Kernels before folios (5.16) pass a page. */
FUNC_ENTRY(on_refault, workingset_refault, refaulted((void *)arg[0], arg[1]))
