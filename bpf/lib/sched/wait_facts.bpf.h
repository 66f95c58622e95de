/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Facts of a wait that a thread still has when it has ended: system call, flags of the kernel.
 *
 * Contexts: sched_switch, for the task that gets the CPU; iterators over tasks.
 */
#ifndef CORETAP_WAIT_FACTS_BPF_H
#define CORETAP_WAIT_FACTS_BPF_H

#include "lib/sched/wait_facts.h"
#include "lib/sched/runqueue.bpf.h"
#include "lib/syscall/syscall.bpf.h"

/* `flags`: flags_of_wait(). */
inline_ u32 call_of(struct task_struct *t, u32 flags)
{
	struct pt_regs *regs;
	s32 number;

	if (flags & WALL_KTHREAD)
		return CALLS;
	if (has_task_regs()) {
		regs = (void *)bpf_task_pt_regs(t);
		number = call_number(regs);
		return number < 0 ? CALLS : call_index(number, running_compat(t, regs));
	}
	regs = saved_regs(t);
	number = saved_call_number(regs);
	return number < 0 ? CALLS : call_index(number, false);
}

/*
 * Flags that a thread has while it waits, until it runs again. Multiplied, as the verifier would
 * check what follows once for each result of a condition.
 */
inline_ u32 flags_of_wait(struct task_struct *t)
{
	u32 flags = WALL_WAIT | (u32)BPF_CORE_READ_BITFIELD(t, in_iowait) * WALL_IOWAIT;

	if (bpf_core_field_exists(t->in_memstall))
		flags |= (u32)BPF_CORE_READ_BITFIELD(t, in_memstall) * WALL_MEMSTALL;
	if (t->flags & PF_KTHREAD)
		flags |= WALL_KTHREAD;
	return flags;
}

/* The same, and the call. */
inline_ u32 facts_of_wait(struct task_struct *t)
{
	u32 flags = flags_of_wait(t);

	return flags | call_of(t, flags);
}

/* Flags of a wait by the thread's state. */
inline_ u32 flags_of_state(struct task_struct *t, u32 state)
{
	u32 flags = 0;

	if (state & TASK_STOPPED)
		flags |= WALL_STOPPED;
	if (state & TASK_TRACED)
		flags |= WALL_TRACED;
	if (state & TASK_FROZEN || (t->flags & (PF_FROZEN | PF_KTHREAD)) == PF_FROZEN)
		flags |= WALL_FROZEN;
	if (state & TASK_NOLOAD)
		flags |= WALL_IDLE_THREAD;
	return flags;
}

#endif
