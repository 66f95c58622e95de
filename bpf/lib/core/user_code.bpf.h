/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions of the running process, for the loader to symbolize.
 *
 * Contexts: the running task, outside of interrupts.
 */
#ifndef CORETAP_USER_CODE_BPF_H
#define CORETAP_USER_CODE_BPF_H

#include "lib/core/task.bpf.h"

inline_ void describe_code(struct user_code *code, u64 address)
{
	struct task_struct *t = current_task();

	code->address = address;
	code->stack_begin = BPF_CORE_READ(t, mm, start_stack);
	code->pid = current_tgid();
	code->image = BPF_CORE_READ(t, self_exec_id);
}

#endif
