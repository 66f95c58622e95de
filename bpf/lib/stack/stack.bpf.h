/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks, stored once each in an ordinary hash map: none is lost to bucket collisions.
 *
 * Contexts: kernel stacks with preemption off, user stacks as current_walk() allows.
 */
#ifndef CORETAP_STACK_BPF_H
#define CORETAP_STACK_BPF_H

#include "lib/core/emit.bpf.h"
#include "lib/stack/process.bpf.h"
#include "lib/stack/runtime_code.bpf.h"
#include "lib/stack/unread_file.bpf.h"
#include "lib/stack/walk.bpf.h"

OPT(bool, stack_kernel);
OPT(bool, stack_user);

/* For kernel stacks, in programs that no other such program can interrupt. */
CPU_SLOTS(stack_scratch, struct stack);

MAP(HASH, stacks, 1, u64, struct stack);

/* The key of a stack whose frames have this hash; 0 means no stack. */
inline_ u64 stack_key(struct stack *s, u64 hash)
{
	hash = walk_hash(hash, *(u64 *)s); /* the whole header before the frames */
	return hash ? hash : 1;
}

/* A stack could not be stored: from here on, none is assumed to
 * be stored. The loader counts the rows shown without a stack. */
bool stack_missed;

/* True: it was not stored before, and is now. */
inline_ bool stack_store(struct stack *s, u64 id)
{
	if (bpf_map_lookup_elem(&stacks, &id))
		return false;
	if (!bpf_map_update_elem(&stacks, &id, s, BPF_NOEXIST))
		return true;
	if (!bpf_map_lookup_elem(&stacks, &id)) /* otherwise another CPU was first */
		stack_missed = true;
	return false;
}

inline_ bool stack_stored(u64 id, u64 before)
{
	return id == before && !stack_missed;
}

/* The key of a kernel stack of this many bytes. */
inline_ u64 key_of_kernel_frames(struct stack *s, u32 bytes, u32 image)
{
	u64 hash = 0;

	s->depth = bytes / 8;
	s->end = bytes >= stack_depth * 8 ? STACK_END_DEPTH : STACK_END_OPEN;
	s->guessed = 0;
	s->image = image;
	for (u32 i = 0; i < STACK_DEPTH; i++) {
		if (i >= bytes / 8)
			break;
		hash = walk_hash(hash, s->ip[i]);
	}
	return stack_key(s, hash);
}

/* For the stack in the scratch. A separate function, as the verifier needs it. */
__noinline u64 kernel_stack_key(u32 bytes, u32 image)
{
	struct stack *s = cpu_slot(&stack_scratch);

	return s ? key_of_kernel_frames(s, bytes, image) : 0;
}

/* Key in `stacks` of the kernel stack in the scratch; 0: no stack. */
inline_ u64 kernel_stack_id(long bytes, u32 image)
{
	return bytes > 0 ? kernel_stack_key((u32)bytes, image) : 0;
}

/* For a user stack that the kernel's walker has left in current_walk(). */
__noinline int hash_user_stack(u32 depth)
{
	struct walk *w = current_walk();

	if (!w)
		return 0;
	w->stack.depth = depth;
	w->stack.end = walk_leaf            ? STACK_END_LEAF :
		       depth >= stack_depth ? STACK_END_DEPTH :
					      STACK_END_OPEN;
	w->stack.guessed = 0;
	w->stack.image = stack_image(w->program, 1);
	w->hash = 0;
	for (u32 i = 0; i < STACK_DEPTH; i++) {
		if (i >= depth)
			break;
		w->hash = walk_hash(w->hash, w->stack.ip[i]);
	}
	return 0;
}

/* Copies a part of the walk's frames, from `first` on; leaves their hash in w->hash. */
__noinline int stack_copy_part(u32 first, u32 frames)
{
	struct walk *w = current_walk();
	u64 hash = 0;

	if (!w)
		return 0;
	for (u32 i = 0; i < STACK_PART; i++) {
		u32 at = first + i;

		barrier_var(at);
		if (i >= frames || at >= STACK_MOST)
			break;
		w->runtime.part.ip[i] = walk_frames(w)[at];
		hash = walk_hash(hash, w->runtime.part.ip[i]);
	}
	w->hash = hash;
	return 0;
}

/* Stores a part of the walk's frames, behind them the next part's key; returns its own. */
__noinline u64 stack_store_part(u32 first, u32 frames, u64 next)
{
	struct walk *w = current_walk();
	struct stack *part;

	if (!w)
		return 0;
	part = &w->runtime.part;
	part->end = w->stack.end;
	part->guessed = w->stack.guessed;
	part->image = w->stack.image;
	part->depth = (u16)(next ? (frames + 1) | STACK_LINKED : frames);
	stack_copy_part(first, frames);
	if (next) {
		barrier_var(frames);
		if (frames >= STACK_DEPTH)
			return 0;
		part->ip[frames] = next;
		w->hash = walk_hash(w->hash, next);
	}
	next = stack_key(part, w->hash);
	stack_store(part, next);
	return next;
}

/* Stores a stack of more than STACK_DEPTH frames; returns its innermost part's key. */
__noinline u64 stack_store_deep(void)
{
	struct walk *w = current_walk();
	u32 first;
	u64 next = 0;

	if (!w)
		return 0;
	first = w->stack.depth;
	for (int i = 0; i < STACK_PARTS; i++) {
		u32 frames = first > STACK_PART ? STACK_PART : first;

		if (!frames)
			break;
		first -= frames;
		next = stack_store_part(first, frames, next);
	}
	return next;
}

inline_ u64 store_user_stack(void *ctx, struct walk *w, u64 before)
{
	u32 size = walk_leaf ? 8 : stack_depth * 8;
	long frames = walk_user();
	u64 id;

	if (frames < 0 && size <= sizeof(w->stack.ip)) {
		frames = bpf_get_stack(ctx, w->stack.ip, size, BPF_F_USER_STACK);
		if (frames > 0)
			hash_user_stack((u32)frames / 8);
	}
	if (frames <= 0)
		return 0;
	if (unwind_tables && runtimes)
		runtime_send_met(w);
	if (w->stack.depth > STACK_DEPTH) {
		id = stack_store_deep();
	} else {
		id = stack_key(&w->stack, w->hash);
		if (stack_stored(id, before))
			return id;
		stack_store(&w->stack, id);
	}
	meet_process(w);
	if (unwind_tables && w->unread)
		unwind_tell_unread();
	return id;
}

/*
 * Stores the user stack of the running task; returns its key in `stacks`,
 * 0: no stack. `before`: its key of the previous time, known to be stored.
 */
inline_ u64 stack_of_user(void *ctx, u64 before)
{
	struct walk *w = claim_walk();
	u64 id;

	if (!w)
		return 0;
	id = store_user_stack(ctx, w, before);
	release_walk(w);
	return id;
}

/* Stores the kernel stack of the running program, or of the code that it interrupted. */
inline_ u64 store_stack_of_kernel(void *ctx, u64 before, u32 image)
{
	struct stack *s = cpu_slot(&stack_scratch);
	u32 size = stack_depth * 8;
	u64 id;

	if (!s || size > sizeof(s->ip))
		return 0;
	id = kernel_stack_id(bpf_get_stack(ctx, s->ip, size, 0), image);
	if (id && !stack_stored(id, before))
		stack_store(s, id);
	return id;
}

inline_ u64 stack_of_kernel(void *ctx, u64 before)
{
	return store_stack_of_kernel(ctx, before, 0);
}

/* For programs on perf events, whose stacks do not begin with the program's own functions. */
inline_ u64 interrupted_stack_of_kernel(void *ctx)
{
	return store_stack_of_kernel(ctx, 0, STACK_INTERRUPTED);
}

/* Kernel stack of a task that is not running; *kept points to it, for storing if it is new. */
inline_ u64 stack_of_blocked(struct task_struct *t, struct stack **kept)
{
	struct stack *s = cpu_slot(&stack_scratch);
	u32 size = stack_depth * 8;

	if (!s || size > sizeof(s->ip))
		return 0;
	*kept = s;
	return kernel_stack_id(bpf_get_task_stack(t, s->ip, size, 0), 0);
}

/* Sums are by task, or by its cgroup, whose id is stored in place of the command's name. */
OPT(bool, stack_by_task);
OPT(bool, stack_by_cgroup);

/* For a pointer from a BTF tracepoint. */
inline_ void party_name(struct stack_party *p, struct task_struct *t)
{
	if (stack_by_cgroup)
		p->cgroup = task_cgroup(t);
	else
		task_comm(t, p->comm);
}

inline_ void party_name_current(struct stack_party *p)
{
	if (stack_by_cgroup)
		p->cgroup = bpf_get_current_cgroup_id();
	else
		bpf_get_current_comm(p->comm, sizeof(p->comm));
}

/* Sets the task's ids and name; for a pointer from a BTF tracepoint. */
inline_ void party_of(struct stack_party *p, struct task_struct *t)
{
	p->tgid = task_tgid(t);
	p->tid = task_tid(t);
	party_name(p, t);
}

#endif
