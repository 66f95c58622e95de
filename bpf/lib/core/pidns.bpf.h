/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pid namespace of a task.
 *
 * Contexts: all.
 */
#ifndef CORETAP_PIDNS_BPF_H
#define CORETAP_PIDNS_BPF_H

#include "lib/core/task.bpf.h"

inline_ u32 pidns_at(struct pid *pid, u32 level)
{
	struct upid upid;

	if (bpf_core_read(&upid, sizeof(upid), &pid->numbers[level]))
		return 0;
	return BPF_CORE_READ(upid.ns, ns.inum);
}

/* The inode of /proc/PID/ns/pid, for a pointer from a BTF tracepoint: plain loads. */
inline_ u32 pidns_of(struct task_struct *t)
{
	struct pid *pid = t->thread_pid;
	u32 level = pid->level;

	return level ? pidns_at(pid, level) : pid->numbers[0].ns->ns.inum;
}

inline_ u32 current_pidns(void)
{
	struct pid *pid;

	if (has_current_btf())
		return pidns_of(bpf_get_current_task_btf());
	pid = BPF_CORE_READ(current_task(), thread_pid);
	return pidns_at(pid, BPF_CORE_READ(pid, level));
}

#endif
