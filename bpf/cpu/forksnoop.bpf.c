// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* forksnoop: new processes and threads, their creators, and how they are made. */
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "cpu/forksnoop.h"

RECORD(forksnoop_event);

OPT(bool, with_threads);

#define CLONE_THREAD 0x10000

/* A new namespace numbers from 1; one that is joined by setns() has a first process. */
inline_ bool first_of_namespace(struct task_struct *t)
{
	struct pid *pid = t->thread_pid;
	u32 level = pid->level;
	struct upid upid;

	if (!level || level > PIDNS_LEVELS)
		return false;
	return !bpf_core_read(&upid, sizeof(upid), &pid->numbers[level]) && upid.nr == 1;
}

/* The running task makes it. All of the new task is set up; it has not run yet. */
TRACING(on_new, "tp_btf/task_newtask")
{
	struct task_struct *child = (void *)ctx[0], *maker = current_task();
	struct forksnoop_event *e;

	if (ctx[1] & CLONE_THREAD && !with_threads)
		return 0;
	if (!keep_task(maker))
		return 0;
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	e->flags = ctx[1];
	e->ppid = process_of(BPF_CORE_READ(maker, group_leader, real_parent));
	e->child_ppid = task_tgid(child->real_parent);
	e->pid_namespace = first_of_namespace(child);
	identify_current(&e->who);
	identify_task(&e->child, child);
	return emit_end(e);
}
