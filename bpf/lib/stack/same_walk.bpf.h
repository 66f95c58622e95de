/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * User stacks of tasks that block again in the same place: the walk is not repeated.
 *
 * Registers, the words that it read, and the mappings of its frames' files determine a walk.
 * The first two are compared with those of the task's last walk; a file with a live frame
 * stays mapped. offcputime's user stacks take 0.5 of the time of repeated walks (6.18,
 * perf bench sched pipe: 650 of 1,300 ns a switch, run_time_ns/run_cnt, beside -K).
 *
 * Contexts: as current_walk() allows, but no NMIs. With task storage.
 */
#ifndef CORETAP_SAME_WALK_BPF_H
#define CORETAP_SAME_WALK_BPF_H

#include "lib/stack/stack.bpf.h"

/* The last walk of a task's user stack. */
struct last_walk {
	u64 id; /* 0: none that can be compared */
	u64 program;
	struct walk_words read;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct last_walk);
} last_walks SEC(".maps");

inline_ bool compares_walks(void)
{
	return has_task_storage() && has_task_regs() && !walk_leaf;
}

/* The key of the running task's user stack if it is that of the last walk; 0: it may differ. */
__noinline u64 same_user_stack(void)
{
	struct walk *w = current_walk();
	struct last_walk *last;
	struct task_struct *t;
	u64 hash = 0, word;

	if (!compares_walks() || !w)
		return 0;
	t = bpf_get_current_task_btf();
	last = bpf_task_storage_get(&last_walks, t, 0, 0);
	if (!last || !last->id || stack_missed)
		return 0;
	walk_registers(w);
	if (last->read.ip != w->ip || last->read.sp != w->sp || last->read.link != w->link ||
	    (last->read.by_bp && last->read.bp != w->bp) ||
	    last->program != program_of(t->tgid, t->self_exec_id))
		return 0;
	w->block_bytes = 0;
	for (u32 i = 0; i < WALK_WORDS; i++) {
		if (i >= last->read.number)
			break;
		if (!unwind_read_block(w, last->read.sp + last->read.at[i] * 8UL, &word))
			return 0;
		hash = walk_hash(hash, word);
	}
	return hash == last->read.hash ? last->id : 0;
}

/* Did the words and the mappings that the loader knows determine the last walk? */
inline_ bool walk_can_repeat(struct walk *w)
{
	if (w->read.number > WALK_WORDS || !w->mm)
		return false;
	return !unwind_tables || (w->stack.end == STACK_END_WHOLE && !w->stack.guessed &&
				  !w->addresses && !w->unknown_map && !w->unread);
}

__noinline int keep_user_stack(u64 id)
{
	struct walk *w = current_walk();
	struct last_walk *last;
	struct task_struct *t;

	if (!compares_walks() || !w)
		return 0;
	w->read.recorded = 0;
	t = bpf_get_current_task_btf();
	last = bpf_task_storage_get(&last_walks, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!last)
		return 0;
	last->id = 0;
	if (!id || !walk_can_repeat(w))
		return 0;
	last->program = w->program;
	last->read = w->read;
	last->id = id;
	return 0;
}

/* stack_of_user(), at programs that a task often reaches with the same stack. */
inline_ u64 often_same_stack_of_user(void *ctx, u64 before)
{
	struct walk *w = current_walk();
	u64 id;

	if (!compares_walks() || !w)
		return stack_of_user(ctx, before);
	id = same_user_stack();
	if (id)
		return id;
	w->read.recorded = 1;
	id = stack_of_user(ctx, before);
	keep_user_stack(id);
	return id;
}

#endif
