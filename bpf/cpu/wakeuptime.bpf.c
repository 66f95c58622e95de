// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* wakeuptime: wakers of blocked tasks, with their stacks and the blocked time. */
#include "lib/sched/still_waiting.bpf.h"
#include "lib/stack/waker.bpf.h"
#include "lib/stack/stack_counts.bpf.h"

STACK_COUNTS(2)

struct off {
	u64 start; /* 0: not blocked, or not wanted */
};

TASK_SLOT(struct off);

TRACING(on_switch, "tp_btf/sched_switch")
{
	struct task_struct *prev = (void *)ctx[1];
	u32 state = left_state(ctx);
	struct off *off;

	/* A task that is still runnable is not woken. */
	if (!state || !leaves_wanted(prev, state))
		return 0;
	off = task_slot_make(prev);
	if (!off)
		return 0;
	if (end_missed(off->start)) /* its wakeup was not seen */
		count(LEDGER_UNMATCHED);
	off->start = bpf_ktime_get_ns();
	return 0;
}

/* In the waker's context; sched_wakeup may run on another CPU, where the task is queued. */
TRACING(on_waking, "tp_btf/sched_waking")
{
	struct task_struct *task = (void *)ctx[0];
	struct stack_row entry = {};
	struct stack_party *waker = &entry.party[1];
	struct off *off = task_slot(task);
	u64 ns;

	if (!off || !off->start)
		return 0;
	ns = since(off->start, bpf_ktime_get_ns());
	off->start = 0;
	if (!wanted_time(ns))
		return 0;
	party_name(&entry.party[0], task);
	party_of_current(ctx, waker);
	/* By name, as in similar tools; but naming user functions requires the process. */
	if (!stack_user)
		waker->tgid = 0;
	waker->tid = waker->tgid;
	return stack_add(&entry, NULL, ns);
}

/* Not woken yet. */
/* Global, as it is large; only the iterator uses it. */
struct stack_row waiting_row;

inline_ void add_waiting(struct task_struct *t, u64 now)
{
	struct off *off = task_slot(t);
	u64 from = waits_since(t, off ? &off->start : NULL);
	struct stack_party *p = &waiting_row.party[0];

	__builtin_memset(&waiting_row, 0, sizeof(waiting_row));
	if (!from || is_queued(t) || !wanted_so_far(since(from, now)))
		return;
	party_name(p, t);
	p->waiting = 1;
	stack_add(&waiting_row, NULL, since(from, now));
}
