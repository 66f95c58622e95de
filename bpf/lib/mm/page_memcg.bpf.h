/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory cgroup that a page is charged to.
 *
 * Contexts: any. Nothing holds the page: reads of kernel memory that may fail.
 */
#ifndef CORETAP_PAGE_MEMCG_BPF_H
#define CORETAP_PAGE_MEMCG_BPF_H

#include "lib/core/coretap.bpf.h"

/* 5.11 (bcfe06bf2622); before, a pointer. */
struct folio___memcg {
	unsigned long memcg_data;
} __attribute__((preserve_access_index));

struct page___memcg_data {
	unsigned long memcg_data;
} __attribute__((preserve_access_index));

struct page___memcg {
	struct mem_cgroup *mem_cgroup;
} __attribute__((preserve_access_index));

/* Since 7.1, pages have an object cgroup, which has the memory cgroup. */
struct obj_cgroup {
	struct mem_cgroup *memcg;
} __attribute__((preserve_access_index));

struct mem_cgroup_per_node___objects {
	struct obj_cgroup *objcg;
} __attribute__((preserve_access_index));

#define MEMCG_FLAGS 7

/* For a folio, or a page on kernels before folios (5.16); NULL: none, or not known. */
inline_ struct mem_cgroup *memcg_of_page(void *pointer)
{
	struct mem_cgroup_per_node___objects *per_node = NULL;
	struct page___memcg_data *data = pointer;
	struct folio___memcg *folio = pointer;
	struct page___memcg *page = pointer;
	struct obj_cgroup *objects;
	struct mem_cgroup *memcg;
	u64 bits;

	if (bpf_core_field_exists(folio->memcg_data))
		bits = BPF_CORE_READ(folio, memcg_data);
	else if (bpf_core_field_exists(data->memcg_data))
		bits = BPF_CORE_READ(data, memcg_data);
	else if (bpf_core_field_exists(page->mem_cgroup))
		bits = (u64)BPF_CORE_READ(page, mem_cgroup);
	else
		return NULL;
	memcg = (void *)(bits & ~(u64)MEMCG_FLAGS);
	if (memcg && bpf_core_field_exists(per_node->objcg)) {
		objects = (void *)memcg;
		memcg = BPF_CORE_READ(objects, memcg);
	}
	return memcg;
}

/* The id of its cgroup. */
inline_ u64 memcg_cgroup(struct mem_cgroup *memcg)
{
	return BPF_CORE_READ(memcg, css.cgroup, kn, id);
}

#endif
