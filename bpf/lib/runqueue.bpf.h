/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Run queues: what differs between kernels. */
#ifndef CORETAP_RUNQUEUE_BPF_H
#define CORETAP_RUNQUEUE_BPF_H

#include "lib/task.bpf.h"

/*
 * 6.14 told the tasks that can run from those that only wait for a delayed dequeue (c2a295bffeaf,
 * also in stable kernels of 6.12); before, h_nr_running was both.
 */
struct cfs_rq___running {
	unsigned int h_nr_running;
} __attribute__((preserve_access_index));

/* Tasks of all classes that can run on this CPU, the running one included. */
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

#endif
