// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* offwaketime: stacks in which tasks block, and stacks of their wakers. */
#include "lib/sched/still_waiting.bpf.h"
#include "lib/stack/waker.bpf.h"
#include "lib/stack/stack_counts.bpf.h"

STACK_COUNTS(2)

struct off {
	struct off_cpu at;
	u64 woken;
	struct stack_party waker;
};

OFF_CPU_SLOT(struct off);

TRACING(on_waking, "tp_btf/sched_waking")
{
	struct off *off = task_slot((struct task_struct *)ctx[0]);

	if (!off || !off->at.start || off->woken)
		return 0;
	off->woken = 1;
	party_of_current(ctx, &off->waker);
	return 0;
}

TRACING(on_switch, "tp_btf/sched_switch")
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct stack_row entry = {};
	struct stack *kernel = NULL;
	u64 now = bpf_ktime_get_ns(), ns;
	u32 state = left_state(ctx);
	struct off *off;

	/* A task that is still runnable is not woken. */
	if (state && leaves_wanted(prev, state)) {
		off = task_slot_make(prev);
		if (off) {
			leave_cpu(ctx, &off->at, now);
			off->woken = 0;
		}
	}

	off = returns_to_cpu(next, now, &ns);
	if (!off || !wanted_time(ns))
		return 0;
	party_off_cpu(&entry.party[0], next, &off->at, &kernel);
	if (off->woken)
		entry.party[1] = off->waker;
	return stack_add(&entry, kernel, ns);
}

/* Global, as it is large; only the iterator uses it. */
struct stack_row waiting_row;

inline_ void add_waiting(struct task_struct *t, u64 now)
{
	struct off *off = task_slot(t);
	bool woken = off && off->at.start && off->woken;
	u64 from = waits_since(t, off ? &off->at.start : NULL);

	if (!from || (!woken && is_queued(t)) || !wanted_so_far(since(from, now)))
		return;
	__builtin_memset(&waiting_row, 0, sizeof(waiting_row));
	party_waiting(&waiting_row.party[0], t, off ? &off->at : NULL);
	if (woken)
		waiting_row.party[1] = off->waker;
	stack_add(&waiting_row, &waiting_stack, since(from, now));
}
