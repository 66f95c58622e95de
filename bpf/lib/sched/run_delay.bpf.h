/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long tasks wait for a CPU. A tool defines add_wait()
 * and at_switch(), and uses the hooks shared::run_delay().
 *
 * Contexts: sched_switch and wake-ups, with interrupts off.
 */
#ifndef CORETAP_RUN_DELAY_BPF_H
#define CORETAP_RUN_DELAY_BPF_H

#include "lib/sched/allowed_idle.bpf.h"
#include "lib/sched/throttle.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/since.bpf.h"
#include "lib/core/program.bpf.h"

/*
 * With --affinity: for so long after a task has run, the scheduler takes its caches for warm and
 * does not move it to an idle CPU; ~0: always.
 */
OPT(__u64, migration_cost_ns);

/* The state kept for a task. */
struct wait {
	u64 delay; /* run delay already reported or before tracing; or time of queueing */
	u64 known;
	u64 idle;    /* with --affinity: idle_so_far() at the start */
	u64 allowed; /* number of the set of those CPUs */
	u64 queue;   /* the address of its struct cfs_rq, and throttled_so_far() there */
	u64 throttled;
	u64 warm; /* with --affinity: for how long from the start its caches count as warm */
};

TASK_SLOT(struct wait);

struct waited {
	u64 ns;
	u64 queued;   /* joined this CPU's queue, by the clock of at_switch(); 0: not known
		       */
	u64 idle_ns;  /* with --affinity: the part with an idle CPU that it may use */
	u64 warm_ns;  /* of this, what was certainly spent while its caches counted as warm */
	u64 quota_ns; /* and the part in which its cgroup had no quota left, first */
	bool idle_known;
};

/* Called when a wanted task gets the CPU after a wait. */
inline_ int add_wait(u64 *ctx, struct task_struct *t, struct waited *w);
/* Called at each switch, before add_wait(). */
inline_ void at_switch(u64 *ctx, struct task_struct *prev, u64 now);

/*
 * The kernel accounts the wait itself: run_delay is the time waited on
 * queues that the task has left, last_queued the time when it joined
 * this one. The wait since the task last left a CPU is the sum of both.
 */
TRACING(switch_by_delay, "tp_btf/sched_switch")
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u64 delay, queued;
	struct wait *w;

	at_switch(ctx, prev, (next->pid ? next : prev)->se.cfs_rq->rq->clock);
	if (prev->pid && (!filter.on || filter_matches(prev))) {
		w = task_slot_make(prev);
		if (w) {
			delay = prev->sched_info.run_delay;
			/* Some switches to a task are not reported
			 * (seen on 6.18), but the task waited. */
			if (w->known && delay > w->delay)
				add_wait(ctx, prev, &(struct waited){ .ns = delay - w->delay });
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
	 * Not seen leaving a CPU: count all of it if this is its first run;
	 * else the wait on other queues before it was moved here is unknown.
	 */
	if (w && w->known)
		delay = since(w->delay, delay);
	else if (next->sched_info.pcount)
		delay = 0;
	if (queued)
		delay += since(queued, next->se.cfs_rq->rq->clock);
	if (w)
		w->delay += delay;
	return add_wait(ctx, next, &(struct waited){ .ns = delay, .queued = queued });
}

#define REALTIME_PRIO 100 /* MAX_RT_PRIO: smaller ones are real time */
#define SCHED_IDLE 5      /* gives way to all others, and is moved at any time */

/* As task_hot() decides. A task that was woken on another CPU has an exec_start of 0. */
inline_ u64 warm_from_now(struct task_struct *t)
{
	u64 ago;

	if (t->prio < REALTIME_PRIO || t->policy == SCHED_IDLE)
		return 0;
	if (migration_cost_ns == ~0ULL)
		return migration_cost_ns;
	ago = since(t->se.exec_start, t->se.cfs_rq->rq->clock_task);
	return since(ago, migration_cost_ns);
}

inline_ int enqueue(struct task_struct *t, u64 now)
{
	struct wait *w;

	if (!t->pid || !keep_task(t))
		return 0;
	w = task_slot_make(t);
	if (!w)
		return 0;
	w->delay = now;
	if (!affinity)
		return 0;
	w->warm = warm_from_now(t);
	w->queue = (u64)t->se.cfs_rq;
	w->throttled = throttled_so_far(t->se.cfs_rq);
	w->allowed = tracing_since ? allowed_cpus(t) : CPUS_UNKNOWN;
	if (w->allowed != CPUS_UNKNOWN)
		w->idle = idle_so_far(w->allowed, now);
	return 0;
}

/*
 * If the CPUs that it may use have changed meanwhile, the parts are unknown. A throttled
 * task does not move to another CPU's queue. While it was throttled a CPU may have been
 * idle or not: as much idle time is not counted, since the scheduler could not use it.
 * Its caches are warm at the start, but idle time may be anywhere in the wait: what does
 * not fit behind the warm part is certainly in it.
 */
inline_ void split_wait(struct waited *wait, struct wait *w, struct task_struct *t, u64 now)
{
	struct cfs_rq *q = t->se.cfs_rq;
	u64 idle;

	if (w->allowed == CPUS_UNKNOWN || allowed_cpus(t) != (u32)w->allowed)
		return;
	wait->idle_known = true;
	if (w->queue == (u64)q)
		wait->quota_ns = since(w->throttled, throttled_so_far(q));
	if (wait->quota_ns > wait->ns)
		wait->quota_ns = wait->ns;
	idle = since(w->idle, idle_so_far(w->allowed, now));
	wait->idle_ns = since(wait->quota_ns, idle < wait->ns ? idle : wait->ns);
	idle = since(w->warm, wait->ns); /* the part behind it */
	wait->warm_ns = since(idle, wait->idle_ns);
}

PROGRAM(on_wakeup, "tp_btf/sched_wakeup", enqueue((void *)ctx[0], bpf_ktime_get_ns()))
PROGRAM(on_wakeup_new, "tp_btf/sched_wakeup_new", enqueue((void *)ctx[0], bpf_ktime_get_ns()))

TRACING(switch_by_wakeup, "tp_btf/sched_switch")
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct waited wait = {};
	u64 now = bpf_ktime_get_ns();
	struct wait *w;

	at_switch(ctx, prev, now);
	cpu_switches(next, now);
	/* Preempted between setting its state and sleeping: state is not 0, but it stays queued. */
	if (!left_state(ctx))
		enqueue(prev, now);
	if (!next->pid)
		return 0;
	w = task_slot(next);
	if (!w || !w->delay)
		return 0;
	wait.queued = w->delay;
	wait.ns = since(w->delay, now);
	w->delay = 0;
	if (affinity)
		split_wait(&wait, w, next, now);
	return add_wait(ctx, next, &wait);
}

#endif
