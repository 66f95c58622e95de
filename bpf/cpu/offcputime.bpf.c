// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* offcputime: where tasks leave the CPU, and how long until they are back. */
#include "lib/filter.bpf.h"
#include "lib/stack.bpf.h"

OPT(__u64, min_block_ns);
OPT(__u64, max_block_ns);
OPT(bool, user_threads_only);
OPT(bool, kernel_threads_only);
OPT(bool, state_on);
OPT(__u32, state_mask); /* 0: runnable */

#define PF_KTHREAD 0x00200000

struct off {
	u64 start; /* 0: on a CPU, or not wanted */
	u64 user;
	u64 runnable;
};

TASK_SLOT(struct off);

inline_ bool wanted(struct task_struct *t, u32 state)
{
	bool kthread = t->flags & PF_KTHREAD;

	if (!t->pid)
		return false; /* idle */
	/* A sleeper's state may carry more bits, such as TASK_FREEZABLE since 6.1. */
	if ((user_threads_only && kthread) || (kernel_threads_only && !kthread) ||
	    (state_on && !(state_mask ? state & state_mask : !state))) {
		count(LEDGER_FILTERED);
		return false;
	}
	return keep_task(t);
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct stack_key key = {};
	struct stack *kernel = NULL;
	u64 now = bpf_ktime_get_ns(), ns;
	u32 state = switched_state(ctx);
	struct off *off;

	if (ctx[0])
		state = 0; /* preempted: still runnable, whatever it was about to do */
	if (wanted(prev, state)) {
		off = task_slot_make(prev);
		if (off) {
			if (off->start) /* the kernel has left out the switch to it */
				count(LEDGER_UNMATCHED);
			off->user = stack_user ? stack_of_user(ctx, prev, off->user) : 0;
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
	if (ns < min_block_ns || (max_block_ns && ns > max_block_ns)) {
		count(LEDGER_FILTERED);
		return 0;
	}
	key.user = off->user;
	key.runnable = off->runnable;
	if (stack_kernel)
		key.kernel = stack_of_blocked(next, &kernel);
	key.tgid = task_tgid(next);
	key.tid = task_tid(next);
	task_comm(next, key.comm);
	stack_add(&key, kernel, ns);
	return 0;
}
