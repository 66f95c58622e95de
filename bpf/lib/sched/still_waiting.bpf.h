/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits still in progress when tracing ends. Just before the programs
 * are detached the loader runs on_waiting(), an iterator over all
 * tasks (StackReport::with_waits_by). A tool defines add_waiting().
 *
 * Contexts: an iterator, preemptible, while other programs run.
 */
#ifndef CORETAP_STILL_WAITING_BPF_H
#define CORETAP_STILL_WAITING_BPF_H

#include "lib/sched/offcpu.bpf.h"
#include "lib/sched/runqueue.bpf.h"

/* For this iterator only: other programs on this CPU may interrupt it. */
struct stack waiting_stack;

/* Adds the task's wait, if it is wanted. */
inline_ void add_waiting(struct task_struct *t, u64 now);

/*
 * Since when the task has been off the CPU; 0: on a CPU, or not wanted. Waits from
 * before tracing count from its start: with a filter for all matching tasks, without for
 * those that are runnable or uninterruptible (others are expected to sleep). *start:
 * when it was seen to leave, 0: never; reset, so that its return is not counted again.
 */
inline_ u64 waits_since(struct task_struct *t, u64 *start)
{
	u32 state = task_state(t);
	u64 from = start ? *start : 0;

	if (!t->pid || t->on_cpu || state & TASK_DEAD)
		return 0;
	if (from) {
		*start = 0;
		return from;
	}
	if (start || !tracing_since || !wanted_thread(t) || !wanted_state(state))
		return 0;
	if (filter.on ? !filter_matches(t) : !load_state(t))
		return 0;
	return tracing_since;
}

/* Like wanted_time(), for a wait that has not ended. */
inline_ bool wanted_so_far(u64 ns)
{
	return ns >= min_block_ns && (!max_block_ns || ns <= max_block_ns);
}

__noinline u64 waiting_stack_key(u32 bytes)
{
	return key_of_kernel_frames(&waiting_stack, bytes, 0);
}

inline_ u64 stack_of_waiting(struct task_struct *t)
{
	u32 size = stack_depth * 8;
	long bytes;

	if (!stack_kernel || size > sizeof(waiting_stack.ip))
		return 0;
	bytes = bpf_get_task_stack(t, waiting_stack.ip, size, 0);
	return bytes > 0 ? waiting_stack_key(bytes) : 0;
}

/* Sets the first task, with its stacks; `off` may be NULL. */
inline_ void party_waiting(struct stack_party *p, struct task_struct *t, struct off_cpu *off)
{
	p->kernel = stack_of_waiting(t);
	p->user = off ? off->user : 0;
	p->waiting = 1;
	party_of(p, t);
}

SEC("iter/task")
int on_waiting(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;

	if (!t)
		return 0;
	add_waiting(t, bpf_ktime_get_ns());
	return 0;
}

#endif
