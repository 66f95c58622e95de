// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* runqlat: time that runnable tasks wait for a CPU. */
#include "lib/filter.bpf.h"
#include "lib/aggregate.bpf.h"
#include "cpu/runqlat.h"

OPT(bool, by_pid);
OPT(bool, by_tid);
OPT(bool, by_pidns);

/* What is known of a task. */
struct wait {
	u64 delay; /* its run delay that is in the histograms or was before; or when it was queued
		    */
	u64 known;
};

TASK_SLOT(struct wait);
HISTOGRAM(delays, struct runqlat_key)

inline_ void add(struct task_struct *next, u64 ns)
{
	struct runqlat_key key = {};

	if (by_pid)
		key.pid = task_tgid(next);
	if (by_tid)
		key.tid = task_tid(next);
	if (by_pid || by_tid)
		task_comm(by_tid ? next : next->group_leader, key.comm);
	if (by_pidns)
		key.pidns = BPF_CORE_READ(next, nsproxy, pid_ns_for_children, ns.inum);
	delays_add(&key, ns);
}

/*
 * The kernel accounts the wait itself: run_delay holds what was waited on queues that the task has
 * left, last_queued when it came to this one. Both together, since it last left a CPU, are the
 * wait.
 */
SEC("tp_btf/sched_switch")
int switch_by_delay(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u64 delay, queued;
	struct wait *w;

	if (prev->pid && (!filter.on || filter_matches(prev))) {
		w = task_slot_make(prev);
		if (w) {
			delay = prev->sched_info.run_delay;
			/* Some switches to a task are not reported (seen on 6.18): it waited all
			 * the same. */
			if (w->known && delay > w->delay)
				add(prev, delay - w->delay);
			w->delay = delay;
			w->known = true;
		}
	}
	if (!next->pid || !keep_task(next))
		return 0;
	delay = next->sched_info.run_delay;
	queued = next->sched_info.last_queued;
	w = task_slot(next);
	/*
	 * Not seen leaving a CPU: all of it if this is its first run; else what it waited
	 * elsewhere, before it was moved here, is not known.
	 */
	if (w && w->known)
		delay = since(w->delay, delay);
	else if (next->sched_info.pcount)
		delay = 0;
	if (queued)
		delay += since(queued, next->se.cfs_rq->rq->clock);
	if (w)
		w->delay += delay;
	add(next, delay);
	return 0;
}

inline_ int enqueue(struct task_struct *t)
{
	struct wait *w;

	if (!t->pid || !keep_task(t))
		return 0;
	w = task_slot_make(t);
	if (w)
		w->delay = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_wakeup")
int on_wakeup(u64 *ctx)
{
	return enqueue((void *)ctx[0]);
}

SEC("tp_btf/sched_wakeup_new")
int on_wakeup_new(u64 *ctx)
{
	return enqueue((void *)ctx[0]);
}

SEC("tp_btf/sched_switch")
int switch_by_wakeup(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct wait *w;
	u64 now;

	/* Preempted between setting its state and sleeping: state is not 0, yet it stays queued. */
	if (ctx[0] || !switched_state(ctx))
		enqueue(prev);
	if (!next->pid)
		return 0;
	w = task_slot(next);
	if (!w || !w->delay)
		return 0;
	now = bpf_ktime_get_ns();
	add(next, since(w->delay, now));
	w->delay = 0;
	return 0;
}
