/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory cgroups: their paths and limits. */
#ifndef CORETAP_MEMCG_BPF_H
#define CORETAP_MEMCG_BPF_H

#include "lib/core/filter.bpf.h"
#include "memory/memcg.h"

#define MEMCG_NAME 256 /* NAME_MAX and a terminator */

/* 6.15 renamed this member (633488947ef6). */
struct kernfs_node___old_parent {
	struct kernfs_node *parent;
} __attribute__((preserve_access_index));

inline_ struct kernfs_node *kernfs_parent(struct kernfs_node *kn)
{
	if (bpf_core_field_exists(kn->__parent))
		return BPF_CORE_READ(kn, __parent);
	return BPF_CORE_READ((struct kernfs_node___old_parent *)kn, parent);
}

/* The record is in a map: the verifier does not track values read back (struct walked). */
inline_ void memcg_path(struct memcg *m, struct kernfs_node *kn)
{
	volatile u32 *bytes = &m->path_bytes;

	for (u32 i = 0; i < CGROUP_LEVELS; i++) {
		struct kernfs_node *parent = kernfs_parent(kn);
		u32 used = *bytes;
		long n;

		if (!parent)
			return;
		if (used > MEMCG_PATH - MEMCG_NAME)
			break;
		n = bpf_probe_read_kernel_str(m->path + used, MEMCG_NAME, BPF_CORE_READ(kn, name));
		if (n < 0)
			break;
		*bytes = used + n;
		kn = parent;
	}
	m->path_cut = true;
}

/* The limit of this counter, or of one above it, that leaves the least. */
__noinline u64 closest_limit(u64 lowest)
{
	struct page_counter *counter = (void *)lowest;
	u64 least = -1ULL, limit = 0, left, max;

	for (u32 i = 0; i < CGROUP_LEVELS && counter; i++) {
		max = BPF_CORE_READ(counter, max);
		left = since(BPF_CORE_READ(counter, usage.counter), max);
		if (left < least) {
			least = left;
			limit = max;
		}
		counter = BPF_CORE_READ(counter, parent);
	}
	return limit;
}

/* The memory must be zeroed. */
inline_ void describe_memcg(struct memcg *m, struct task_struct *t)
{
	struct css_set *set = BPF_CORE_READ(t, cgroups);
	struct cgroup_subsys_state *css = NULL;
	struct kernfs_node *kn;

	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		return;
	bpf_core_read(&css, sizeof(css),
		      &set->subsys[bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id)]);
	if (!css)
		return;
	kn = BPF_CORE_READ(css, cgroup, kn);
	m->id = BPF_CORE_READ(kn, id);
	memcg_path(m, kn);
	m->limit = closest_limit((u64)css - bpf_core_field_offset(struct mem_cgroup, css) +
				 bpf_core_field_offset(struct mem_cgroup, memory));
}

#endif
