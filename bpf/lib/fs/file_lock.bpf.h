/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Holders of file locks: flock(2), and fcntl(2) with locks of processes or of open files.
 *
 * Contexts: the running task, outside of interrupts.
 */
#ifndef CORETAP_FILE_LOCK_BPF_H
#define CORETAP_FILE_LOCK_BPF_H

#include "lib/core/task.bpf.h"

#define FILE_READ_LOCK 0
#define FILE_WRITE_LOCK 1

/* 6.9 moved most members to struct file_lock_core (a69ce85ec9af). */
struct file_lock___flat {
	struct list_head fl_list;
	void *fl_owner;
	unsigned char fl_type;
	unsigned int fl_pid;
} __attribute__((preserve_access_index));

struct held_file_lock {
	u64 owner, first, last;
	s32 pid; /* of the process that took it, in the initial namespace; -1: of an open file */
	u32 type;
};

inline_ bool file_locks_are_flat(void)
{
	return !bpf_core_type_exists(struct file_lock_core);
}

/* Reads the lock at this node of a list. */
inline_ void read_file_lock(u64 node, struct held_file_lock *to)
{
	struct file_lock *l = NULL;
	struct file_lock___flat *flat = NULL;

	if (file_locks_are_flat()) {
		flat = (void *)(node - bpf_core_field_offset(flat->fl_list));
		to->owner = (u64)BPF_CORE_READ(flat, fl_owner);
		to->type = BPF_CORE_READ(flat, fl_type);
		to->pid = BPF_CORE_READ(flat, fl_pid);
		l = (void *)flat;
	} else {
		l = (void *)(node - bpf_core_field_offset(l->c.flc_list));
		to->owner = (u64)BPF_CORE_READ(l, c.flc_owner);
		to->type = BPF_CORE_READ(l, c.flc_type);
		to->pid = BPF_CORE_READ(l, c.flc_pid);
	}
	to->first = BPF_CORE_READ(l, fl_start);
	to->last = BPF_CORE_READ(l, fl_end);
}

#define FILE_LOCKS 32 /* of a file that are looked at */

/*
 * The process that holds a lock which excludes `wanted` (its pid and range are not used to
 * compare owners); 0: none was found, -1: the lock belongs to an open file.
 */
inline_ s32 holder_of_file(struct inode *inode, bool posix, const struct held_file_lock *wanted)
{
	struct file_lock_context *c = BPF_CORE_READ(inode, i_flctx);
	u64 head, node;

	if (!c)
		return 0;
	head = (u64)c +
	       (posix ? bpf_core_field_offset(c->flc_posix) : bpf_core_field_offset(c->flc_flock));
	if (bpf_probe_read_kernel(&node, sizeof(node), (void *)head))
		return 0;
	for (u32 i = 0; i < FILE_LOCKS; i++) {
		struct held_file_lock held;

		if (!node || node == head)
			return 0;
		read_file_lock(node, &held);
		if (held.owner != wanted->owner && held.last >= wanted->first &&
		    held.first <= wanted->last &&
		    (held.type == FILE_WRITE_LOCK || wanted->type == FILE_WRITE_LOCK))
			return held.pid;
		if (bpf_probe_read_kernel(&node, sizeof(node), (void *)node))
			return 0;
	}
	return 0;
}

#endif
