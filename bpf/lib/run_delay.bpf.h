/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long tasks wait for a CPU. A tool defines waited() and at_switch(), and has a hook with
 * switch_by_delay or with on_wakeup, on_wakeup_new and switch_by_wakeup.
 */
#ifndef CORETAP_RUN_DELAY_BPF_H
#define CORETAP_RUN_DELAY_BPF_H

#include "lib/filter.bpf.h"

/* What is known of a task. */
struct wait {
	u64 delay; /* its run delay that was given out or was before; or when it was queued */
	u64 known;
};

TASK_SLOT(struct wait);

/*
 * A wanted task has the CPU after a wait. `queued`: when it came to this CPU's queue, by the clock
 * of at_switch(); 0: not known.
 */
inline_ void waited(u64 *ctx, struct task_struct *t, u64 ns, u64 queued);
/* At each switch, before that. */
inline_ void at_switch(struct task_struct *prev, u64 now);

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

	at_switch(prev, (next->pid ? next : prev)->se.cfs_rq->rq->clock);
	if (prev->pid && (!filter.on || filter_matches(prev))) {
		w = task_slot_make(prev);
		if (w) {
			delay = prev->sched_info.run_delay;
			/* Some switches to a task are not reported (seen on 6.18): it waited all
			 * the same. */
			if (w->known && delay > w->delay)
				waited(ctx, prev, delay - w->delay, 0);
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
	waited(ctx, next, delay, queued);
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
	u64 now = bpf_ktime_get_ns(), queued;
	struct wait *w;

	at_switch(prev, now);
	/* Preempted between setting its state and sleeping: state is not 0, yet it stays queued. */
	if (ctx[0] || !switched_state(ctx))
		enqueue(prev);
	if (!next->pid)
		return 0;
	w = task_slot(next);
	if (!w || !w->delay)
		return 0;
	queued = w->delay;
	w->delay = 0;
	waited(ctx, next, since(queued, now), queued);
	return 0;
}

#endif
