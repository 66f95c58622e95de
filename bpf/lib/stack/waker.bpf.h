/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The waker: the running task, or the interrupt that interrupted it.
 *
 * Contexts: wake-ups: tasks and interrupts, with interrupts off.
 */
#ifndef CORETAP_WAKER_BPF_H
#define CORETAP_WAKER_BPF_H

#include "lib/stack/cpu_walk.bpf.h"
#include "lib/stack/stack.bpf.h"

/*
 * Address ranges of interrupt entry code, from the loader: frames above it on a stack do not belong
 * to the running task. No kernel field shows this on all kernels: x86 keeps the interrupt count in
 * a per-CPU variable that moved twice and that programs cannot find without CONFIG_KALLSYMS_ALL.
 */
OPT(__u64, irq_code_begin);
OPT(__u64, irq_code_end);
OPT(__u64, softirq_code_begin);
OPT(__u64, softirq_code_end);

/* For the stack in the scratch: a separate function, as the verifier needs it. */
__noinline u32 state_of_scratch(u32 depth)
{
	struct stack *s = cpu_slot(&stack_scratch);
	u32 state = STACK_TASK;

	for (u32 i = 0; s && i < STACK_DEPTH; i++) {
		u64 ip;

		if (i >= depth)
			break;
		ip = s->ip[i];
		if (ip - irq_code_begin < irq_code_end - irq_code_begin)
			return STACK_IRQ;
		if (ip - softirq_code_begin < softirq_code_end - softirq_code_begin)
			state = STACK_SOFTIRQ; /* unless it runs on exit from an interrupt */
	}
	return state;
}

/* *p may have the previous values: those stacks are known to be stored. */
inline_ void party_of_current(void *ctx, struct stack_party *p)
{
	struct stack *s = cpu_slot(&stack_scratch);
	u32 size = stack_depth * 8, state = STACK_TASK;
	u64 kernel = 0, user = 0;
	long bytes;

	if (!s || size > sizeof(s->ip))
		return;
	bytes = bpf_get_stack(ctx, s->ip, size, 0);
	if (bytes > 0) {
		state = state_of_scratch((u32)bytes / 8);
		if (stack_kernel)
			kernel = kernel_stack_id(bytes, 0);
		if (kernel && !stack_stored(kernel, p->kernel))
			stack_store(s, kernel);
	}
	if (state == STACK_TASK && !(u32)bpf_get_current_pid_tgid())
		state = STACK_IDLE;
	if (state == STACK_TASK) {
		if (stack_user)
			user = stack_of_user(ctx, p->user);
		p->tgid = current_tgid();
		p->tid = current_tid();
		party_name_current(p);
	} else {
		p->tgid = p->tid = 0;
		__builtin_memset(p->comm, 0, sizeof(p->comm));
	}
	p->state = state;
	p->kernel = kernel;
	p->user = user;
}

#endif
