/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The system call that the running task is in, for programs not at the call's entry.
 *
 * Contexts: the running task, outside of interrupts.
 */
#ifndef CORETAP_CURRENT_CALL_BPF_H
#define CORETAP_CURRENT_CALL_BPF_H

#include "lib/syscall/syscall.bpf.h"
#include "lib/core/task.bpf.h"

/* Read the address by a helper; NULL: a kernel thread, which makes no system calls. */
inline_ struct pt_regs *current_call_regs(void)
{
	struct task_struct *t = current_task();

	if (BPF_CORE_READ(t, flags) & PF_KTHREAD)
		return NULL;
	return current_regs(t);
}

/* By call_index(); CALLS: in an interrupt or exception, or a kernel thread; not in a call. */
inline_ u32 current_call_of(struct pt_regs *regs)
{
	s32 number;

	if (!regs)
		return CALLS;
	number = saved_call_number(regs);
	return number < 0 ? CALLS : call_index(number, saved_compat(regs));
}

inline_ u32 current_call(void)
{
	return current_call_of(current_call_regs());
}

#endif
