/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completed page faults, as getrusage(2) counts them: minor ones, and major ones, for
 * which data was read. They are perf's software events minor-faults and major-faults,
 * with the address. Not included: faults that the kernel makes for itself to reach a
 * page (mlock, MAP_POPULATE, direct I/O), and those that end in a signal.
 * The tool has a TASK_SLOT that begins with struct fault, and defines fault_slot() and
 * fault_begins(); or includes lib/mm/fault_slots.bpf.h if it needs no more members.
 *
 * Contexts: the running task, outside of interrupts, in the fault.
 */
#ifndef CORETAP_FAULT_BPF_H
#define CORETAP_FAULT_BPF_H

#include "lib/mm/fault.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/mm/mapping_changes.bpf.h"
#include "lib/paths/file_identity.bpf.h"

#define VM_HUGETLB 0x400000

/* enum fault_flag */
#define FAULT_WRITE (1 << 0)
#define FAULT_TRIED (1 << 5) /* a retry of the same fault */

/* The mapping at an address. */
struct area {
	struct area_id id;
	u64 file; /* its struct file; 0: none */
	u64 flags;
	u64 start, end;
};

/* Per task: its fault, and the mapping that was looked up last. At the start of the tool's slot. */
struct fault {
	struct area area;
	u64 program; /* the counts of execs and of mapping changes for which `area` is valid */
	u64 changes;
	u64 write;
};

/* The running task's slot. */
inline_ struct fault *fault_slot(bool make);

/* A fault begins: resets the tool's members of the slot. */
inline_ void fault_begins(struct fault *f);

/* A pointer that the verifier trusts is read by direct loads. */
#define GET(p, member) (trusted ? (p)->member : BPF_CORE_READ(p, member))

inline_ void area_of(struct area *a, struct vm_area_struct *vma, const bool trusted)
{
	struct file *file = GET(vma, vm_file);
	struct super_block *sb;
	struct inode *inode;
	struct mm_struct *mm;
	u64 stack;

	__builtin_memset(a, 0, sizeof(*a));
	a->file = (u64)file;
	a->flags = GET(vma, vm_flags);
	a->start = GET(vma, vm_start);
	a->end = GET(vma, vm_end);
	if (file) {
		inode = GET(file, f_inode);
		sb = GET(inode, i_sb);
		a->id.kind = AREA_FILE;
		a->id.file.inode = GET(inode, i_ino);
		a->id.file.generation = GET(inode, i_generation);
		a->id.file.dev = GET(sb, s_dev);
		identify_within(&a->id.file, inode, sb);
		return;
	}
	mm = GET(vma, vm_mm);
	stack = GET(mm, start_stack);
	if (GET(vma, vm_ops))
		a->id.kind = AREA_SPECIAL;
	else if (a->start < GET(mm, brk) && a->end > GET(mm, start_brk))
		a->id.kind = AREA_HEAP;
	else if (a->start <= stack && stack <= a->end)
		a->id.kind = AREA_STACK;
	else
		a->id.kind = AREA_ANONYMOUS;
}

static long take_area(struct task_struct *task, struct vm_area_struct *vma, void *to)
{
	area_of(to, vma, true);
	return 0;
}

/*
 * For the running task. While another thread changes mappings they cannot be read: unknown.
 * If events come with interrupts disabled, the lookup takes microseconds, as the kernel then
 * releases its lock by an interrupt. Cached, as most faults are in the last one's mapping.
 */
inline_ void find_area(struct area *a, u64 address)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct mm_struct *mm = t->mm;
	struct fault *f = mm ? fault_slot(true) : NULL;
	u64 changes, program = t->self_exec_id;

	if (!f)
		return;
	changes = mapping_changes(mm);
	if (changes && f->changes == changes && f->program == program &&
	    address - f->area.start < f->area.end - f->area.start) {
		*a = f->area;
		return;
	}
	f->changes = 0;
	if (bpf_find_vma(t, address, take_area, a, 0))
		return;
	f->area = *a;
	f->program = program;
	f->changes = changes;
}

/* Before bpf_find_vma (5.17: 7c7e3d31e785) the mapping is saved at the function's entry. */
inline_ void kept_area(struct area *a)
{
	struct fault *f = fault_slot(false);

	if (f)
		*a = f->area;
}

inline_ struct fault *begin_fault(u64 write, bool again)
{
	struct fault *f;

	if (filter.on && !filter_matches(current_task()))
		return NULL;
	f = fault_slot(true);
	if (f && !again) {
		f->write = write;
		fault_begins(f);
	}
	return f;
}

inline_ int keep_fault(u64 vma, u32 flags)
{
	struct fault *f = begin_fault(flags & FAULT_WRITE, flags & FAULT_TRIED);

	if (f && !bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_find_vma))
		area_of(&f->area, (void *)vma, false);
	return 0;
}

FUNC_ENTRY(on_fault, handle_mm_fault, keep_fault(arg[0], arg[2]))

#endif
