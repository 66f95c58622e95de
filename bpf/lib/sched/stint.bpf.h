/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stints: how long a task keeps a CPU at a time. Programs at sched_switch record the current
 * one of each CPU; a program in section run/each_cpu starts those already in progress.
 *
 * Contexts: sched_switch, with interrupts off. Counts UNMATCHED.
 */
#ifndef CORETAP_STINT_BPF_H
#define CORETAP_STINT_BPF_H

#include "lib/core/filter.bpf.h"
#include "lib/sched/runqueue.bpf.h"
#include "lib/core/since.bpf.h"

struct stint {
	u64 start;
	u64 task; /* its address; 0: not known */
};

CPU_SLOTS(stints_under_way, struct stint);

inline_ bool stint_known(void)
{
	struct stint *s = cpu_slot(&stints_under_way);

	return s && s->task;
}

/*
 * The stint of the task that leaves this CPU now. False: its start was not seen.
 *
 * Some switches are not reported (seen on 6.18): the start then is that of the kernel's
 * accounting, and the previous task's stint is lost; with filters that may be an unwanted task.
 */
inline_ bool stint_ended(struct task_struct *t, u64 now, u64 *ns)
{
	struct stint *s = cpu_slot(&stints_under_way);
	u64 own;

	if (!s || !s->task || tracing_stopped)
		return false;
	*ns = since(s->start, now);
	if (s->task == (u64)t)
		return true;
	if (!filter.on && end_missed(s->start))
		count(LEDGER_UNMATCHED);
	if (!bpf_core_field_exists(t->sched_info.last_arrival))
		return false;
	own = since(BPF_CORE_READ(t, sched_info.last_arrival), BPF_CORE_READ(rq_of(t), clock));
	if (own < *ns)
		*ns = own;
	return true;
}

inline_ void stint_starts(u64 task, u64 now)
{
	struct stint *s = cpu_slot(&stints_under_way);

	if (!s)
		return;
	s->task = task;
	s->start = now;
}

#endif
