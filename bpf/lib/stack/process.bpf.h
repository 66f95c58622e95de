/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes whose user stacks are taken: messages about them to the loader.
 *
 * Contexts: tasks; unwind_* at the tracepoints of processes.
 */
#ifndef CORETAP_PROCESS_BPF_H
#define CORETAP_PROCESS_BPF_H

#include "lib/core/emit.bpf.h"
#include "lib/stack/walk.bpf.h"

inline_ void tell_process(struct walk *w, enum stack_process_news news)
{
	struct task_struct *current;
	struct stack_process *p;

	p = bpf_ringbuf_reserve(&events, sizeof(*p), 0);
	if (!p)
		return; /* retried next time */
	current = current_task();
	p->mark = STACK_PROCESS;
	p->tgid = current_tgid();
	p->forked_from = 0;
	p->program = w->program;
	p->stack_begin = BPF_CORE_READ(current, mm, start_stack);
	p->news = news;
	p->pad = 0;
	/* exec increments self_exec_id only; fork copies both from the parent. */
	if (BPF_CORE_READ(current, self_exec_id) == BPF_CORE_READ(current, parent_exec_id))
		p->forked_from = view_pidns ? pid_seen(BPF_CORE_READ(current, real_parent,
								     group_leader, thread_pid)) :
					      BPF_CORE_READ(current, real_parent, tgid);
	bpf_ringbuf_submit(p, BPF_RB_FORCE_WAKEUP);
	if (news == STACK_PROCESS_MET)
		bpf_map_update_elem(&stack_known_mms, &w->mm, &w->program, BPF_ANY);
}

/* Reports each process to the loader once, while its maps can be read. */
inline_ void meet_process(struct walk *w)
{
	if (!is_known_mm(w))
		tell_process(w, STACK_PROCESS_MET);
	else if (w->unknown_map && unwind_ask(w))
		tell_process(w, STACK_PROCESS_CHANGED);
}

/*
 * Until a process executes another program it has its parent's memory, and the parent's
 * tables are valid for it. After exec it has another exec count, and no old entry matches.
 */
TRACING(unwind_fork, "tp_btf/sched_process_fork")
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	u64 key = program_of(child->tgid, child->self_exec_id);
	struct unwind_process *p, copy;
	struct stack_process *news;

	if (child->tgid == parent->tgid)
		return 0; /* a thread */
	p = unwind_process_of(program_of(parent->tgid, parent->self_exec_id));
	if (!p)
		return 0;
	copy = *p;
	copy.asked = false;
	bpf_map_update_elem(&unwind_processes, &key, &copy, BPF_ANY);
	news = bpf_ringbuf_reserve(&events, sizeof(*news), 0);
	if (!news)
		return 0; /* reported with its first stack */
	news->mark = STACK_PROCESS;
	news->tgid = task_tgid(child);
	news->forked_from = task_tgid(parent);
	news->program = key;
	news->stack_begin = BPF_CORE_READ(child, mm, start_stack);
	news->news = STACK_PROCESS_FORKED;
	news->pad = 0;
	bpf_ringbuf_submit(news, 0);
	return 0;
}

inline_ void unwind_forget(u64 program)
{
	bpf_map_delete_elem(&unwind_processes, &program);
	program |= UNWIND_ANY_EXEC;
	bpf_map_delete_elem(&unwind_processes, &program);
}

TRACING(unwind_exec, "tp_btf/sched_process_exec")
{
	struct task_struct *t = (void *)ctx[0];

	unwind_forget(program_of(t->tgid, t->self_exec_id - 1));
	return 0;
}

TRACING(unwind_exit, "tp_btf/sched_process_exit")
{
	struct task_struct *t = (void *)ctx[0];

	if (last_thread_exits(ctx))
		unwind_forget(program_of(t->tgid, t->self_exec_id));
	return 0;
}

MAP(ARRAY, unwind_answer, 1, u32, struct unwind_answer);

inline_ int answer_key(struct walk *w, struct unwind_answer *answer, u64 address)
{
	answer->start = 0;
	w->mm = (u64)BPF_CORE_READ(current_task(), mm);
	if (!address || !mapping_find(address))
		return 0;
	answer->key = w->search.key;
	answer->end = w->search.end;
	answer->page = w->search.page;
	answer->start = w->search.start;
	return 1;
}

/* The loader asks for the file that it has mapped at an address. */
SEC("run/asked")
int unwind_ask_key(u64 *ctx)
{
	struct unwind_answer *answer;
	struct walk *w;
	int found;
	u32 zero = 0;

	answer = bpf_map_lookup_elem(&unwind_answer, &zero);
	if (!answer)
		return 0;
	w = claim_walk();
	if (!w)
		return 0;
	found = answer_key(w, answer, ctx[0]);
	release_walk(w);
	return found;
}

#endif
