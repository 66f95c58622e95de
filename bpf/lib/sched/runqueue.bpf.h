/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Run queues: differences between kernels.
 *
 * Contexts: all.
 */
#ifndef CORETAP_RUNQUEUE_BPF_H
#define CORETAP_RUNQUEUE_BPF_H

#include "lib/core/since.bpf.h"
#include "lib/core/task.bpf.h"

/*
 * 6.14 separated runnable tasks from those waiting for a delayed dequeue
 * (c2a295bffeaf, also in stable kernels of 6.12); before, h_nr_running counted both.
 */
struct cfs_rq___running {
	unsigned int h_nr_running;
} __attribute__((preserve_access_index));

/* Number of runnable tasks of all classes on this CPU, including the running one. */
inline_ u32 runnable_on(struct rq *rq)
{
	struct cfs_rq___running *old = (void *)&rq->cfs;
	struct cfs_rq *cfs = &rq->cfs;
	u32 n;

	if (bpf_core_field_exists(cfs->h_nr_runnable))
		n = BPF_CORE_READ(cfs, h_nr_runnable);
	else
		n = BPF_CORE_READ(old, h_nr_running);
	n += BPF_CORE_READ(rq, rt.rt_nr_running);
	if (bpf_core_field_exists(rq->dl.dl_nr_running))
		n += BPF_CORE_READ(rq, dl.dl_nr_running);
	if (bpf_core_field_exists(rq->scx.nr_running)) /* sched_ext: 6.12, f0e1a0643a59 */
		n += BPF_CORE_READ(rq, scx.nr_running);
	return n;
}

/* The run queue of the CPU that this task is on. */
inline_ struct rq *rq_of(struct task_struct *t)
{
	return BPF_CORE_READ(t, se.cfs_rq, rq);
}

/* Since 6.12 a sleeping task may stay in the queue for a while (delayed dequeue). */
inline_ bool is_queued(struct task_struct *t)
{
	if (!t->on_rq)
		return false;
	return !bpf_core_field_exists(t->se.sched_delayed) || !t->se.sched_delayed;
}

#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_STOPPED 0x4
#define TASK_TRACED 0x8
#define TASK_DEAD 0x80
#define TASK_NOLOAD 0x400
#define TASK_NEW 0x800
#define TASK_FROZEN 0x8000 /* since 6.1 (f5d39b020809); not a state before */
#define PF_FROZEN 0x10000  /* before 6.1; later a flag of kernel threads */

/* As counted by the load average: 'R' runnable, 'D' uninterruptible, 0 not counted. */
inline_ char load_state(struct task_struct *t)
{
	u32 state = task_state(t);

	if (is_queued(t))
		return 'R';
	if (!(state & TASK_UNINTERRUPTIBLE) || state & (TASK_NOLOAD | TASK_FROZEN))
		return 0;
	return (t->flags & (PF_FROZEN | PF_KTHREAD)) == PF_FROZEN ? 0 : 'D';
}

/* The kernel's own times of a task, for switches that were not seen; 0, ~0: not known. */
inline_ u64 queued_ago(struct task_struct *t)
{
	u64 queued =
		bpf_core_field_exists(t->sched_info.last_queued) ? t->sched_info.last_queued : 0;

	return queued ? since(queued, BPF_CORE_READ(t, se.cfs_rq, rq, clock)) : 0;
}

inline_ u64 arrived_ago(struct task_struct *t)
{
	return bpf_core_field_exists(t->sched_info.last_arrival) ?
		       since(t->sched_info.last_arrival, BPF_CORE_READ(t, se.cfs_rq, rq, clock)) :
		       ~0ULL;
}

#endif
