// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* offcputime: stacks in which tasks leave the CPU, and the time until they return. */
#include "lib/sched/still_waiting.bpf.h"
#include "lib/stack/stack_counts.bpf.h"

STACK_COUNTS(1)

struct off {
	struct off_cpu at;
	u64 runnable;
};

OFF_CPU_SLOT(struct off);

TRACING(on_switch, "tp_btf/sched_switch")
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct stack_row entry = {};
	struct stack_party *p = &entry.party[0];
	struct stack *kernel = NULL;
	u64 now = bpf_ktime_get_ns(), ns;
	u32 state = left_state(ctx);
	struct off *off;

	if (leaves_wanted(prev, state)) {
		off = task_slot_make(prev);
		if (off) {
			leave_cpu(ctx, &off->at, now);
			off->runnable = !state;
		}
	}

	off = returns_to_cpu(next, now, &ns);
	if (!off || !wanted_time(ns))
		return 0;
	p->state = off->runnable ? STACK_RUNNABLE : STACK_TASK;
	party_off_cpu(p, next, &off->at, &kernel);
	return stack_add(&entry, kernel, ns);
}

/* Global, as it is large; only the iterator uses it. */
struct stack_row waiting_row;

inline_ void add_waiting(struct task_struct *t, u64 now)
{
	struct off *off = task_slot(t);
	u64 from = waits_since(t, off ? &off->at.start : NULL);
	struct stack_party *p = &waiting_row.party[0];

	__builtin_memset(&waiting_row, 0, sizeof(waiting_row));
	if (!from || !wanted_so_far(since(from, now)))
		return;
	p->state = is_queued(t) ? STACK_RUNNABLE : STACK_TASK;
	party_waiting(p, t, off ? &off->at : NULL);
	stack_add(&waiting_row, &waiting_stack, since(from, now));
}
