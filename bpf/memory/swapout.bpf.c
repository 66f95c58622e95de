// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* swapout: memory written to swap, by its owner and the task that reclaims it. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/mm/mm.bpf.h"
#include "lib/mm/page_memcg.bpf.h"
#include "memory/swapout.h"

#define MAPPING_ANON 1
#define MAPPING_FLAGS 3 /* the other one: pages that KSM merged */

TABLE(pages, struct swapout_key, struct swapout_counts)

struct reclaim {
	u64 cause; /* plus one; 0: none in progress */
};

TASK_SLOT(struct reclaim);

inline_ int begin(u32 cause)
{
	struct reclaim *r = current_slot(true);

	if (r)
		r->cause = cause + 1;
	return 0;
}

inline_ int end(void)
{
	struct reclaim *r = current_slot(false);

	if (r)
		r->cause = 0;
	return 0;
}

PAIR(direct, mm_vmscan_direct_reclaim, begin(RECLAIM_DIRECT), end())
PAIR(memcg, mm_vmscan_memcg_reclaim, begin(RECLAIM_MEMCG), end())

/* ---- the owner of an anonymous page ---- */

struct owners {
	struct mm_struct *mm;
	u64 index; /* of the page */
	bool several;
};

/* A mapping that pages of this group may be in; does it have this one? */
static __noinline int look_at(struct owners *o, u64 at)
{
	struct anon_vma_chain *chain =
		(void *)at - bpf_core_field_offset(struct anon_vma_chain, rb);
	struct vm_area_struct *vma;
	struct mm_struct *mm;
	u64 first, bytes;

	if (!at || !o)
		return 0;
	vma = BPF_CORE_READ(chain, vma);
	first = BPF_CORE_READ(vma, vm_pgoff);
	bytes = BPF_CORE_READ(vma, vm_end) - BPF_CORE_READ(vma, vm_start);
	if (o->index < first || (o->index - first) * page_bytes >= bytes)
		return 0;
	mm = BPF_CORE_READ(vma, vm_mm);
	if (o->mm && o->mm != mm)
		o->several = true;
	o->mm = mm;
	return 0;
}

#define LEFT(node) ((node) ? BPF_CORE_READ(node, rb_left) : NULL)
#define RIGHT(node) ((node) ? BPF_CORE_READ(node, rb_right) : NULL)

/* The upper levels of the tree of mappings; a deeper one counts as several. */
inline_ void find_owners(struct owners *o, struct anon_vma *group)
{
	struct rb_node *top = BPF_CORE_READ(group, rb_root.rb_root.rb_node), *node[7];

	node[0] = top;
	node[1] = LEFT(top);
	node[2] = RIGHT(top);
	node[3] = LEFT(node[1]);
	node[4] = RIGHT(node[1]);
	node[5] = LEFT(node[2]);
	node[6] = RIGHT(node[2]);
#pragma unroll
	for (u32 i = 0; i < 7; i++) {
		look_at(o, (u64)node[i]);
		if (i >= 3 && (LEFT(node[i]) || RIGHT(node[i])))
			o->several = true;
	}
}

/* The process of this memory; NULL: not known. */
inline_ struct task_struct *owner_of(struct mm_struct *mm)
{
	return mm && bpf_core_field_exists(mm->owner) ? BPF_CORE_READ(mm, owner) : NULL;
}

/* ---- */

inline_ int written(void *folio)
{
	u64 swapbacked = 1ULL << bpf_core_enum_value(enum pageflags, PG_swapbacked);
	u64 mapping = folio_mapping(folio), pages;
	struct owners owners = { .index = folio_index(folio) };
	struct task_struct *owner = NULL;
	struct swapout_key key = {};
	struct swapout_counts *row;
	struct mem_cgroup *memcg;
	struct reclaim *reclaim;

	if (!(folio_flags(folio) & swapbacked))
		return 0; /* of a file */
	key.owner = SWAPOUT_UNKNOWN;
	if (!(mapping & MAPPING_ANON)) {
		key.owner = SWAPOUT_SHMEM;
	} else if ((mapping & MAPPING_FLAGS) == MAPPING_ANON) {
		find_owners(&owners, (void *)(mapping & ~(u64)MAPPING_FLAGS));
		owner = owner_of(owners.mm);
		if (owners.several)
			key.owner = SWAPOUT_SEVERAL;
		else if (owner)
			key.owner = SWAPOUT_ONE;
	}
	if (key.owner != SWAPOUT_ONE)
		owner = NULL;
	if (filter.on && !(owner ? keep_task(owner) : filtered()))
		return 0;
	if (owner) {
		key.pid = process_of(owner);
		bpf_core_read_str(key.comm, sizeof(key.comm), &owner->comm);
	}
	memcg = memcg_of_page(folio);
	key.cgroup = memcg ? memcg_cgroup(memcg) : 0;
	reclaim = current_slot(false);
	key.cause = reclaim_cause_now(reclaim ? reclaim->cause : 0);
	key.by_pid = current_tgid();
	bpf_get_current_comm(key.by_comm, sizeof(key.by_comm));
	row = pages_row(&key);
	if (!row)
		return 0;
	pages = folio_pages(folio);
	__sync_fetch_and_add(&row->count, 1);
	__sync_fetch_and_add(&row->bytes, pages * page_bytes);
	return 0;
}

/* Kernels before folios (5.16) pass a page. */
PROGRAM(on_write_folio, "tp_btf/mm_vmscan_write_folio", written((void *)ctx[0]))
PROGRAM(on_write_page, "tp_btf/mm_vmscan_writepage", written((void *)ctx[0]))
