/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tasks that leave the CPU and return: which are wanted, since when, with which stacks.
 *
 * Contexts: sched_switch, with interrupts off. Counts FILTERED, UNMATCHED.
 */
#ifndef CORETAP_OFFCPU_BPF_H
#define CORETAP_OFFCPU_BPF_H

#include "lib/core/filter.bpf.h"
#include "lib/core/since.bpf.h"
#include "lib/stack/cpu_walk.bpf.h"
#include "lib/stack/same_walk.bpf.h"

OPT(__u64, min_block_ns);
OPT(__u64, max_block_ns);
OPT(bool, user_threads_only);
OPT(bool, kernel_threads_only);
OPT(bool, state_on);
OPT(__u32, state_mask); /* 0: runnable */

inline_ bool wanted_thread(struct task_struct *t)
{
	bool kthread = t->flags & PF_KTHREAD;

	return t->pid && !(user_threads_only && kthread) && !(kernel_threads_only && !kthread);
}

#define TASK_NOLOAD 0x400 /* uninterruptible but idle: kernel threads waiting for work */

/* A sleeper's state may have more bits, such as TASK_FREEZABLE since 6.1. */
inline_ bool wanted_state(u32 state)
{
	if (!state_on)
		return true;
	if (!state_mask)
		return !state;
	return state & state_mask && !(state & TASK_NOLOAD & ~state_mask);
}

inline_ bool leaves_wanted(struct task_struct *t, u32 state)
{
	if (!t->pid)
		return false; /* the idle task */
	if (!wanted_thread(t) || !wanted_state(state))
		return filtered();
	return keep_task(t);
}

inline_ bool wanted_time(u64 ns)
{
	if (ns >= min_block_ns && (!max_block_ns || ns <= max_block_ns))
		return true;
	return filtered();
}

struct off_cpu {
	u64 start; /* 0: on a CPU, or not wanted */
	u64 user;  /* key of its user stack; kept after the return for reuse */
};

inline_ void leave_cpu(void *ctx, struct off_cpu *off, u64 now)
{
	if (end_missed(off->start)) /* the kernel skipped the switch to it */
		count(LEDGER_UNMATCHED);
	off->user = stack_user ? often_same_stack_of_user(ctx, off->user) : 0;
	off->start = now;
}

inline_ u64 back_on_cpu(struct off_cpu *off, u64 now)
{
	u64 ns = since(off->start, now);

	off->start = 0;
	return ns;
}

/*
 * TASK_SLOT() of a slot with a struct off_cpu as its member `at`.
 * returns_to_cpu(): the slot of the returning task, with its time off the CPU;
 * NULL: not wanted, or its leaving was not seen. Leaving is not included: the
 * compiler would check a slot that a function returns for NULL again.
 */
#define OFF_CPU_SLOT(slot_type)                                                       \
	TASK_SLOT(slot_type);                                                         \
	inline_ slot_type *returns_to_cpu(struct task_struct *next, u64 now, u64 *ns) \
	{                                                                             \
		slot_type *off;                                                       \
                                                                                      \
		if (!next->pid)                                                       \
			return NULL;                                                  \
		off = task_slot(next);                                                \
		if (!off || !off->at.start)                                           \
			return NULL;                                                  \
		*ns = back_on_cpu(&off->at, now);                                     \
		return off;                                                           \
	}

/* The returning task, and the stacks where it blocked; *kernel is for stack_add. */
inline_ void party_off_cpu(struct stack_party *p, struct task_struct *next, struct off_cpu *off,
			   struct stack **kernel)
{
	p->user = off->user;
	if (stack_kernel)
		p->kernel = stack_of_blocked(next, kernel);
	party_of(p, next);
}

#endif
