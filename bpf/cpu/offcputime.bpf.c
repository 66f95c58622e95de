// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* offcputime: where tasks leave the CPU, and how long until they are back. */
#include "lib/offcpu.bpf.h"
#include "lib/stack.bpf.h"

struct off {
	u64 start; /* 0: on a CPU, or not wanted */
	u64 user;
	u64 runnable;
};

TASK_SLOT(struct off);

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
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
			if (off->start) /* the kernel has left out the switch to it */
				count(LEDGER_UNMATCHED);
			off->user = stack_user ? stack_of_task_user(ctx, prev, off->user) : 0;
			off->runnable = !state;
			off->start = now;
		}
	}

	if (!next->pid)
		return 0;
	off = task_slot(next);
	if (!off || !off->start)
		return 0;
	ns = since(off->start, now);
	off->start = 0;
	if (!wanted_time(ns))
		return 0;
	p->user = off->user;
	p->state = off->runnable ? STACK_RUNNABLE : STACK_TASK;
	if (stack_kernel)
		p->kernel = stack_of_blocked(next, &kernel);
	party_of(p, next);
	stack_add(&entry, kernel, ns);
	return 0;
}
