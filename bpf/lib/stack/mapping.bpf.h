/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The mapping of the running task at an address, and its file, from the kernel's own tree: a
 * maple tree since 6.1 (d4af56c5c7c6), an rb tree before. It is read without locks, in any
 * context. A result is therefore verified: it holds the address, belongs to this address
 * space, and is the same when read twice. No result does not mean that nothing is mapped.
 *
 * Contexts: all, NMIs included.
 */
#ifndef CORETAP_MAPPING_BPF_H
#define CORETAP_MAPPING_BPF_H

#include "lib/stack/walk_state.bpf.h"

struct mm_struct___rb {
	struct rb_root mm_rb;
} __attribute__((preserve_access_index));

struct vm_area_struct___rb {
	struct rb_node vm_rb;
} __attribute__((preserve_access_index));

/* Until 6.6 (12cd44023651), and until 6.10 (3aa63a569c64). */
struct timespec64___old {
	s64 tv_sec;
	long tv_nsec;
} __attribute__((preserve_access_index));

struct inode___6_6 {
	struct timespec64___old i_mtime;
} __attribute__((preserve_access_index));

struct inode___6_10 {
	struct timespec64___old __i_mtime;
} __attribute__((preserve_access_index));

/* A member of a mapping that was read, by its offset. */
inline_ u64 mapping_word(const u64 *words, u32 offset)
{
	return words[offset / 8 & (MAPPING_WORDS - 1)];
}

/* Up to the last member that is needed: 144 to 168 bytes. */
#define MAPPING_BYTES (bpf_core_field_offset(struct vm_area_struct, vm_file) + 8)

#define PAGE_MASK 4095
#define NO_POINTER 4096 /* smaller values are NULL or a mark of the tree */
#define MAPLE_LEVELS 12 /* 60,000 mappings take 5 */
#define RB_LEVELS 40    /* 2 * log2(65,530 + 1) */

/* One node of a maple tree; not 0: it was a leaf, whose entry is in s->at, or the search ended.
 */
__noinline int mapping_maple_step(void)
{
	struct walk *w = current_walk();
	struct mapping_search *s;
	u32 type, slots, i;
	u64 node;

	/* Up to 6.7 the verifier checks this function even if it is not called. */
	if (!unwind_tables || !w || !bpf_core_field_exists(struct mm_struct, mm_mt))
		return 1;
	s = &w->search;
	node = s->at & ~255UL;
	type = s->at >> 3 & 15;
	slots = (type == bpf_core_enum_value(enum maple_type, maple_arange_64) ?
			 bpf_core_field_offset(struct maple_arange_64, slot) :
			 bpf_core_field_offset(struct maple_range_64, slot)) /
		8;
	s->at = 0;
	if (type != bpf_core_enum_value(enum maple_type, maple_leaf_64) &&
	    type != bpf_core_enum_value(enum maple_type, maple_range_64) &&
	    type != bpf_core_enum_value(enum maple_type, maple_arange_64))
		return 1;
	if (bpf_probe_read_kernel(s->words, sizeof(s->words), (void *)node) ||
	    (s->words[0] & ~255UL) == node) /* replaced: a dead node is its own parent */
		return 1;
	/* Parent, pivots (the last address of each slot), slots. */
	for (i = 1; i < 16; i++)
		if (i >= slots || s->words[i] >= s->address)
			break;
	i += slots - 1;
	barrier_var(i);
	s->at = s->words[i & (MAPPING_WORDS - 1)];
	return type == bpf_core_enum_value(enum maple_type, maple_leaf_64) || s->at < NO_POINTER;
}

__noinline int mapping_rb_step(void)
{
	struct walk *w = current_walk();
	struct mapping_search *s;
	u32 child;
	u64 at;

	if (!unwind_tables || !w || !bpf_core_field_exists(struct mm_struct___rb, mm_rb))
		return 1;
	s = &w->search;
	if (s->at < NO_POINTER)
		return 1;
	at = s->at - bpf_core_field_offset(struct vm_area_struct___rb, vm_rb);
	s->at = 0;
	/* vm_start, vm_end, vm_rb, vm_mm are in the first 72 bytes. */
	if (bpf_probe_read_kernel(s->words, 72, (void *)at) ||
	    mapping_word(s->words, bpf_core_field_offset(struct vm_area_struct, vm_mm)) !=
		    w->mm) /* freed */
		return 1;
	if (s->address <
	    mapping_word(s->words, bpf_core_field_offset(struct vm_area_struct, vm_start))) {
		child = bpf_core_field_offset(struct rb_node, rb_left);
	} else if (s->address >=
		   mapping_word(s->words, bpf_core_field_offset(struct vm_area_struct, vm_end))) {
		child = bpf_core_field_offset(struct rb_node, rb_right);
	} else {
		s->at = at;
		return 1;
	}
	child = (child + bpf_core_field_offset(struct vm_area_struct___rb, vm_rb)) / 8;
	barrier_var(child);
	s->at = s->words[child & (MAPPING_WORDS - 1)];
	return 0;
}

inline_ bool mapping_read(struct mapping_search *s, u64 *words)
{
	return MAPPING_BYTES <= MAPPING_WORDS * 8 &&
	       !bpf_probe_read_kernel(words, MAPPING_BYTES & (MAPPING_WORDS * 16 - 1),
				      (void *)s->at);
}

/* The start of an inode is read at once: on 6.18 it has all members needed. */
#define INODE_BYTES 128

/* The eight bytes of the inode that hold this offset. */
inline_ u64 inode_word(struct mapping_search *s, u64 inode, u32 offset)
{
	u64 word = 0;

	offset &= ~7U;
	if (offset < INODE_BYTES)
		return s->again[offset / 8 & (MAPPING_WORDS - 1)];
	bpf_probe_read_kernel(&word, sizeof(word), (void *)(inode + offset));
	return word;
}

inline_ u32 inode_half(struct mapping_search *s, u64 inode, u32 offset)
{
	return (u32)(inode_word(s, inode, offset) >> (offset & 4) * 8);
}

inline_ u64 inode_modified_ns(struct mapping_search *s, u64 inode)
{
	u64 seconds;
	u32 ns;

	if (bpf_core_field_exists(struct inode___6_6, i_mtime)) {
		seconds = inode_word(s, inode,
				     bpf_core_field_offset(struct inode___6_6, i_mtime.tv_sec));
		ns = inode_half(s, inode,
				bpf_core_field_offset(struct inode___6_6, i_mtime.tv_nsec));
	} else if (bpf_core_field_exists(struct inode___6_10, __i_mtime)) {
		seconds = inode_word(s, inode,
				     bpf_core_field_offset(struct inode___6_10, __i_mtime.tv_sec));
		ns = inode_half(s, inode,
				bpf_core_field_offset(struct inode___6_10, __i_mtime.tv_nsec));
	} else {
		seconds = inode_word(s, inode, bpf_core_field_offset(struct inode, i_mtime_sec));
		ns = inode_half(s, inode, bpf_core_field_offset(struct inode, i_mtime_nsec));
	}
	return seconds * 1000000000ULL + ns;
}

/* Sets s->key, the file's identity; all 0 without a file, as for the vdso. */
__noinline int mapping_key(void)
{
	struct walk *w = current_walk();
	struct mapping_search *s;
	struct mm_struct *mm;
	struct file *file;
	u64 inode;

	if (!unwind_tables || !w)
		return 0;
	s = &w->search;
	s->key = (struct unwind_file_key){};
	/* Locals, or members of struct mapping_search would be relocated, too. */
	file = (struct file *)s->file;
	mm = (struct mm_struct *)w->mm;
	if (!file) {
		s->vdso = (u64)BPF_CORE_READ(mm, context.vdso);
		return 0;
	}
	inode = (u64)BPF_CORE_READ(file, f_inode);
	if (bpf_probe_read_kernel(s->again, INODE_BYTES, (void *)inode))
		return 0;
	s->key.inode = inode_word(s, inode, bpf_core_field_offset(struct inode, i_ino));
	s->key.size = inode_word(s, inode, bpf_core_field_offset(struct inode, i_size));
	s->key.modified_ns = inode_modified_ns(s, inode);
	s->key.generation = inode_half(s, inode, bpf_core_field_offset(struct inode, i_generation));
	/* The superblock's address distinguishes file systems, and is already read. */
	s->key.superblock =
		(u32)(inode_word(s, inode, bpf_core_field_offset(struct inode, i_sb)) >> 6);
	return 1;
}

/* Stores the node or mapping at the root in s->at. */
inline_ bool mapping_root(struct walk *w)
{
	struct mapping_search *s = &w->search;
	struct task_struct *t;
	u64 root;

	if (has_task_regs()) { /* direct loads */
		t = bpf_get_current_task_btf();
		if (bpf_core_field_exists(struct mm_struct___rb, mm_rb))
			s->at = (u64)((struct mm_struct___rb *)t->mm)->mm_rb.rb_node;
		else
			s->at = (u64)t->mm->mm_mt.ma_root;
		return w->mm && s->at >= NO_POINTER;
	}
	if (bpf_core_field_exists(struct mm_struct___rb, mm_rb))
		root = w->mm + bpf_core_field_offset(struct mm_struct___rb, mm_rb);
	else
		root = w->mm + bpf_core_field_offset(struct mm_struct, mm_mt) +
		       bpf_core_field_offset(struct maple_tree, ma_root);
	return w->mm && !bpf_probe_read_kernel(&s->at, 8, (void *)root) && s->at >= NO_POINTER;
}

/* Fills w->search; w->mm is set. 0: not found. */
__noinline int mapping_find(u64 address)
{
	struct walk *w = current_walk();
	struct mapping_search *s;

	if (!unwind_tables || !w)
		return 0;
	s = &w->search;
	s->address = address;
	if (!mapping_root(w))
		return 0;
	if (bpf_core_field_exists(struct mm_struct___rb, mm_rb)) {
		for (int i = 0; i < RB_LEVELS; i++)
			if (mapping_rb_step())
				break;
	} else {
		if ((s->at & 3) != 2) /* not a node: at most one mapping */
			return 0;
		for (int i = 0; i < MAPLE_LEVELS; i++)
			if (mapping_maple_step())
				break;
	}
	if (s->at < NO_POINTER || (s->at & 7) || !mapping_read(s, s->words))
		return 0;
	s->start = mapping_word(s->words, bpf_core_field_offset(struct vm_area_struct, vm_start));
	s->end = mapping_word(s->words, bpf_core_field_offset(struct vm_area_struct, vm_end));
	s->page = mapping_word(s->words, bpf_core_field_offset(struct vm_area_struct, vm_pgoff));
	s->file = mapping_word(s->words, bpf_core_field_offset(struct vm_area_struct, vm_file));
	/* In a freed mapping, the allocator's or RCU's data may overwrite start and end. */
	if (mapping_word(s->words, bpf_core_field_offset(struct vm_area_struct, vm_mm)) != w->mm ||
	    !s->start || ((s->start | s->end) & PAGE_MASK) || s->end >> USER_BITS ||
	    address < s->start || address >= s->end)
		return 0;
	mapping_key();
	return mapping_read(s, s->again) &&
	       mapping_word(s->again, bpf_core_field_offset(struct vm_area_struct, vm_start)) ==
		       s->start &&
	       mapping_word(s->again, bpf_core_field_offset(struct vm_area_struct, vm_end)) ==
		       s->end &&
	       mapping_word(s->again, bpf_core_field_offset(struct vm_area_struct, vm_mm)) ==
		       w->mm &&
	       mapping_word(s->again, bpf_core_field_offset(struct vm_area_struct, vm_pgoff)) ==
		       s->page &&
	       mapping_word(s->again, bpf_core_field_offset(struct vm_area_struct, vm_file)) ==
		       s->file;
}

#endif
