// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* chaintrace: stacks in which tasks block, their wakers, the wakers of those, and so on. */
#include "lib/sched/still_waiting.bpf.h"
#include "lib/stack/waker.bpf.h"
#include "lib/stack/stack_counts.bpf.h"

#define CHAIN_MOST 8

STACK_COUNTS(1 + CHAIN_MOST)

OPT_OR(__u32, chain_length, 4);
OPT_OR(__u64, chain_age_ns, 1000000000); /* older wake-ups are not added to the chain */

struct off {
	struct off_cpu at;
	u64 woken_ns; /* 0: not woken since it blocked */
	u32 wanted;
	u32 wakers;
	struct stack_party waker[CHAIN_MOST];
};

OFF_CPU_SLOT(struct off);
CPU_SLOTS(chain_entry, struct stack_row);

TRACING(on_waking, "tp_btf/sched_waking")
{
	struct off *off = task_slot((struct task_struct *)ctx[0]), *own;
	u64 now;

	if (!off || !off->at.start || off->wakers)
		return 0;
	now = bpf_ktime_get_ns();
	party_of_current(ctx, &off->waker[0]);
	off->wakers = 1;
	off->woken_ns = now;
	if (off->waker[0].state != STACK_TASK)
		return 0; /* the waker is an interrupt: the chain ends */
	own = current_slot(false);
	if (!own || !own->woken_ns || since(own->woken_ns, now) > chain_age_ns)
		return 0;
	for (u32 i = 0; i + 1 < CHAIN_MOST; i++) {
		if (i + 1 >= chain_length || i >= own->wakers)
			break;
		off->waker[i + 1] = own->waker[i];
		off->wakers = i + 2;
	}
	return 0;
}

inline_ void add_wakers(struct stack_row *entry, struct off *off)
{
	for (u32 i = 0; i < CHAIN_MOST; i++) {
		if (i >= off->wakers)
			break;
		entry->party[1 + i] = off->waker[i];
	}
}

TRACING(on_switch, "tp_btf/sched_switch")
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct stack_row *entry;
	struct stack *kernel = NULL;
	u64 now = bpf_ktime_get_ns(), ns;
	u32 state = left_state(ctx);
	struct off *off;

	/* For all tasks: a filtered task may be a waker. */
	if (state && prev->pid) {
		off = task_slot_make(prev);
		if (off) {
			off->wanted = leaves_wanted(prev, state);
			if (off->wanted)
				leave_cpu(ctx, &off->at, now);
			else
				off->at = (struct off_cpu){ .start = now };
			off->wakers = 0;
		}
	}

	off = returns_to_cpu(next, now, &ns);
	if (!off || !off->wanted || !wanted_time(ns))
		return 0;
	entry = cpu_slot(&chain_entry);
	if (!entry)
		return 0;
	__builtin_memset(entry, 0, sizeof(*entry));
	party_off_cpu(&entry->party[0], next, &off->at, &kernel);
	add_wakers(entry, off);
	return stack_add(entry, kernel, ns);
}

/* Global, as it is large; only the iterator uses it. */
struct stack_row waiting_row;

inline_ void add_waiting(struct task_struct *t, u64 now)
{
	struct off *off = task_slot(t);
	bool woken = off && off->at.start && off->wakers;
	u64 from = waits_since(t, off ? &off->at.start : NULL);

	if (!from || (off && !off->wanted) || (!woken && is_queued(t)) ||
	    !wanted_so_far(since(from, now)))
		return;
	__builtin_memset(&waiting_row, 0, sizeof(waiting_row));
	party_waiting(&waiting_row.party[0], t, off ? &off->at : NULL);
	if (woken)
		add_wakers(&waiting_row, off);
	stack_add(&waiting_row, &waiting_stack, since(from, now));
}
