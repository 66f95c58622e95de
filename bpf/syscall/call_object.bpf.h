/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program or library whose code makes a system call: the file that is mapped at the user's
 * instruction pointer. Its path is sent once, when the file is still mapped.
 *
 * Contexts: sys_enter, sys_exit. Counts UNTRACKED (by task_walk.bpf.h: its slot).
 */
#ifndef CORETAP_CALL_OBJECT_BPF_H
#define CORETAP_CALL_OBJECT_BPF_H

#include "lib/paths/row_text.bpf.h"
#include "lib/stack/task_walk.bpf.h"
#include "lib/stack/mapping.bpf.h"
#include "lib/mm/mapping_changes.bpf.h"
#include "syscall/interrupted.bpf.h"
#include "syscall/syscount.h"

/* Of a task's last call, with its mapping: most calls are made from the same one. */
struct call_object {
	struct file_id file;
	u32 kind;  /* enum syscount_object */
	u32 named; /* its path was sent */
	u64 start, end;
	u64 program; /* the counts of execs and of mapping changes for which it is valid */
	u64 changes; /* 0: look it up again */
};

#define LOOK_UPS 8

MAP(LRU_HASH, named_objects, 16384, struct file_id, u8);

static __noinline int send_object(struct file *file, struct call_object *o)
{
	struct syscount_key key = {};
	u8 sent = 1;

	if (!file || !o)
		return 0;
	key.object = SYSCOUNT_FILE;
	key.file = o->file;
	if (!bpf_map_lookup_elem(&named_objects, &key.file)) {
		if (!send_row_path(&key, sizeof(key), file))
			return 0;
		bpf_map_update_elem(&named_objects, &key.file, &sent, BPF_ANY);
	}
	o->named = 1;
	return 0;
}

/* Sets *o for a call of the running task with these registers. */
inline_ void find_object(struct call_object *o, struct pt_regs *regs)
{
	/* Behind the instruction, which is longer than one byte. */
	u64 address = call_address(regs) - 1, changes, program;
	struct task_struct *t = running_task();
	struct mm_struct *mm = OF_RUNNING(t, mm);
	struct mapping_search *s;
	struct inode *inode;
	struct file *file;
	struct walk *w;
	int found = 0;

	program = OF_RUNNING(t, self_exec_id);
	changes = mm ? mapping_changes(mm) : 0;
	if (changes && o->changes == changes && o->program == program &&
	    address - o->start < o->end - o->start && o->named)
		return;
	o->changes = 0;
	o->kind = SYSCOUNT_UNKNOWN;
	o->file = (struct file_id){};
	o->named = 0;
	w = current_walk();
	if (!w)
		return;
	w->mm = (u64)mm;
	/* Not found, too, while another thread changes the tree. */
	for (int i = 0; i < LOOK_UPS && !found; i++)
		found = mapping_find(address);
	if (!found)
		return;
	s = &w->search;
	file = (struct file *)s->file;
	if (file) {
		inode = BPF_CORE_READ(file, f_inode);
		o->kind = SYSCOUNT_FILE;
		o->file.inode = BPF_CORE_READ(inode, i_ino);
		o->file.generation = BPF_CORE_READ(inode, i_generation);
		o->file.dev = BPF_CORE_READ(inode, i_sb, s_dev);
		send_object(file, o);
	} else {
		o->kind = s->start == s->vdso ? SYSCOUNT_VDSO : SYSCOUNT_ANONYMOUS;
		o->named = 1;
	}
	o->start = s->start;
	o->end = s->end;
	o->program = program;
	o->changes = changes;
}

#endif
