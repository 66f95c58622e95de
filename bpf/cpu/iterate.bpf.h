/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Iterator programs over tasks (src/program/iterator.hpp reads them). */
#ifndef CORETAP_ITERATE_BPF_H
#define CORETAP_ITERATE_BPF_H

#include "cpu/iterate.h"
#include "lib/sched/runqueue.bpf.h"

/*
 * How long the task has run, waited for its CPU or been off it, to a tick; 0: not
 * recorded by the kernel. The first two only if it records run delays (sched_info).
 * A queue has two clocks: one stops while the CPU handles interrupts.
 */
inline_ u64 in_state_ns(struct task_struct *t)
{
	u64 now = BPF_CORE_READ(rq_of(current_task()), clock), at = t->se.exec_start;
	struct rq *rq = rq_of(t);

	if (!is_queued(t))
		at += at ? BPF_CORE_READ(rq, clock) - BPF_CORE_READ(rq, clock_task) : 0;
	else if (!bpf_core_field_exists(t->sched_info.last_queued))
		at = 0;
	else
		at = t->on_cpu ? t->sched_info.last_arrival : t->sched_info.last_queued;
	return at ? since(at, now) : 0;
}

/* Writes all bytes, so that equal stacks are equal keys. */
inline_ void stack_of_task(struct task_struct *t, struct stack *s)
{
	u32 size = stack_depth * 8;
	long bytes;

	s->depth = 0;
	for (int i = 0; i < STACK_DEPTH; i++)
		*(volatile u64 *)&s->ip[i] = 0;
	if (t->on_cpu || size > sizeof(s->ip))
		return;
	bytes = bpf_get_task_stack(t, s->ip, size, 0);
	if (bytes > 0)
		s->depth = (u32)bytes / 8;
	else if (!t->on_rq) /* otherwise it may be running by now */
		count(LEDGER_STACK_FAILED);
}

/* A row may be a global variable: one reader runs the program at a time. */
inline_ void task_row(struct task_struct *t, char state, struct task_row *row)
{
	row->kind.state[0] = state;
	task_comm(t, row->kind.comm);
	stack_of_task(t, &row->kind.stack);
	identify_task(&row->who, t);
	row->in_state_ns = in_state_ns(t);
	row->cpu = task_cpu(t);
	row->running = t->on_cpu;
}

#endif
