// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* hfaults: page faults that map huge pages, and small pages collapsed into huge ones. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/mm/each_fault.bpf.h"
#include "lib/mm/fault_starts.bpf.h"
#include "lib/core/program.bpf.h"
#include "memory/hfaults.h"

OPT_OR(__u32, huge_order, 9); /* of a page mapped by one second-level table entry */

#define MIGRATE_MOVABLE 1
#define SCAN_SUCCEED 1

enum huge { HUGE_NONE, HUGE_GOT, HUGE_REFUSED };

struct huge_fault {
	struct fault fault;
	u64 huge; /* enum huge */
};

TASK_SLOT(struct huge_fault);

inline_ struct fault *fault_slot(bool make)
{
	return (struct fault *)current_slot(make);
}

inline_ void fault_begins(struct fault *f)
{
	((struct huge_fault *)f)->huge = HUGE_NONE;
}

TABLE(processes, struct hfaults_key, struct hfaults_counts)

inline_ struct hfaults_counts *row_of(struct task_struct *t)
{
	struct hfaults_key key = { .pid = process_of(t) };
	struct task_struct *leader = BPF_CORE_READ(t, group_leader);

	bpf_core_read_str(key.comm, sizeof(key.comm), &leader->comm);
	return processes_row(&key);
}

inline_ bool needs_area(void)
{
	return true;
}

static __noinline int fault_served(struct bpf_perf_event_data *ctx, bool major, struct area *a)
{
	struct huge_fault *f = current_slot(false);
	u64 huge = f ? f->huge : HUGE_NONE;
	struct hfaults_counts *row;

	if (!a || (huge == HUGE_NONE && !(a->flags & VM_HUGETLB)))
		return 0;
	row = row_of(current_task());
	if (!row)
		return 0;
	if (a->flags & VM_HUGETLB)
		__sync_fetch_and_add(&row->hugetlb, 1);
	else if (huge == HUGE_GOT)
		__sync_fetch_and_add(&row->thp, 1);
	else
		__sync_fetch_and_add(&row->fallbacks, 1);
	return 0;
}

/* Allocation of a huge page, or its failure. */
TRACING(on_page_alloc, "tp_btf/mm_page_alloc")
{
	struct huge_fault *f;

	if ((u32)ctx[1] < huge_order || (u32)ctx[3] != MIGRATE_MOVABLE)
		return 0;
	f = current_slot(false);
	if (f)
		f->huge = ctx[0] ? HUGE_GOT : HUGE_REFUSED;
	return 0;
}

/* The memory cgroup had no room for the page: it is freed before the fault ends. */
TRACING(on_page_free, "tp_btf/mm_page_free")
{
	struct huge_fault *f;

	if ((u32)ctx[1] < huge_order)
		return 0;
	f = current_slot(false);
	if (f && f->huge == HUGE_GOT)
		f->huge = HUGE_REFUSED;
	return 0;
}

/* By khugepaged, or by the task itself with madvise(2): counts for the memory's owner. */
inline_ int collapsed(struct mm_struct *mm)
{
	struct task_struct *owner = BPF_CORE_READ(mm, owner);
	struct hfaults_counts *row;

	if (!owner || (filter.on && !keep_task(owner)))
		return 0;
	row = row_of(owner);
	if (row)
		__sync_fetch_and_add(&row->collapses, 1);
	return 0;
}

/* 7.2 passes the order, as there are smaller ones. */
TP_ARGS(mm_collapse_huge_page);

TRACING(on_collapse, "tp_btf/mm_collapse_huge_page")
{
	if ((u32)ctx[2] != SCAN_SUCCEED)
		return 0;
	if (tp_args_mm_collapse_huge_page >= 4 && (u32)ARG(ctx, 3) < huge_order)
		return 0;
	return collapsed((void *)ctx[0]);
}

PROGRAM(on_collapse_file, "tp_btf/mm_khugepaged_collapse_file",
	(u32)ctx[7] == SCAN_SUCCEED ? collapsed((void *)ctx[0]) : 0)
