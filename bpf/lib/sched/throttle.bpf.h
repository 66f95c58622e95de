/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time without CPU quota: differences between kernels.
 *
 * Contexts: sched_switch and wake-ups, with interrupts off.
 */
#ifndef CORETAP_THROTTLE_BPF_H
#define CORETAP_THROTTLE_BPF_H

#include "lib/core/coretap.bpf.h"

/* Before 6.6 (677ea015f231) only by the clock of load averages, which is slower on a slow CPU. */
struct cfs_rq___pelt {
	u64 throttled_clock_pelt;
	u64 throttled_clock_pelt_time;
	int throttle_count;
} __attribute__((preserve_access_index));

struct rq___pelt {
	u64 clock_pelt;
	u64 lost_idle_time;
} __attribute__((preserve_access_index));

/* Does the kernel measure it by the clock of the run queue? */
inline_ bool throttled_exactly(void)
{
	return bpf_core_field_exists(((struct cfs_rq *)0)->throttled_clock_self_time);
}

/*
 * Time that the tasks of this queue could not run, as their cgroup, or one above it, had used its
 * quota of CPU time (cpu.max). Only differences are meaningful. 0 on kernels without quotas.
 */
inline_ u64 throttled_so_far(struct cfs_rq *q)
{
	struct cfs_rq___pelt *old = (void *)q;
	struct rq___pelt *rq;

	if (throttled_exactly())
		return q->throttled_clock_self_time +
		       (q->throttled_clock_self ?
				since(q->throttled_clock_self, BPF_CORE_READ(q, rq, clock)) :
				0);
	if (!bpf_core_field_exists(old->throttled_clock_pelt_time))
		return 0;
	rq = (void *)q->rq;
	return old->throttled_clock_pelt_time +
	       (old->throttle_count ?
			since(old->throttled_clock_pelt, rq->clock_pelt - rq->lost_idle_time) :
			0);
}

/*
 * The same of the queue that a task has left, by address, if its cgroup is that of the queue where
 * the task is: the queue then exists. Else 0, and also unless throttled_exactly().
 */
inline_ u64 throttled_before(u64 left, struct cfs_rq *q)
{
	struct cfs_rq *old = (void *)left;
	u64 start;

	if (!throttled_exactly() || !bpf_core_field_exists(q->tg) ||
	    BPF_CORE_READ(old, tg) != BPF_CORE_READ(q, tg))
		return 0;
	start = BPF_CORE_READ(old, throttled_clock_self);
	return BPF_CORE_READ(old, throttled_clock_self_time) +
	       (start ? since(start, BPF_CORE_READ(old, rq, clock)) : 0);
}

#endif
