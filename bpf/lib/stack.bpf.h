/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stacks: kept once each in an ordinary hash map, so that none is lost to another's bucket. */
#ifndef CORETAP_STACK_BPF_H
#define CORETAP_STACK_BPF_H

#include "lib/emit.bpf.h"
#include "lib/process.bpf.h"
#include "lib/unread_file.bpf.h"
#include "lib/walk.bpf.h"

OPT(bool, stack_kernel);
OPT(bool, stack_user);

/* The task alone; tools that follow wakers define more before they include this. */
#ifndef STACK_PARTIES
#define STACK_PARTIES 1
#endif

struct stack_row {
	struct stack_sum sum;
	struct stack_party party[STACK_PARTIES];
};

/* For kernel stacks, in programs that nothing of their kind can interrupt. */
CPU_SLOTS(stack_scratch, struct stack);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct stack);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct stack_row);
} stack_counts SEC(".maps");

/* The key of a stack whose frames have this hash; 0 means no stack. */
inline_ u64 stack_key(struct stack *s, u64 hash)
{
	hash = walk_hash(hash, *(u64 *)s); /* all that comes before the frames */
	return hash ? hash : 1;
}

/* A stack could not be stored: none is taken for stored from here on. The loader counts what is
 * shown without one. */
bool stack_missed;

/* True: it was not there, and is now. */
inline_ bool stack_store(struct stack *s, u64 id)
{
	if (bpf_map_lookup_elem(&stacks, &id))
		return false;
	if (!bpf_map_update_elem(&stacks, &id, s, BPF_NOEXIST))
		return true;
	if (!bpf_map_lookup_elem(&stacks, &id)) /* else another CPU was first */
		stack_missed = true;
	return false;
}

inline_ bool stack_stored(u64 id, u64 before)
{
	return id == before && !stack_missed;
}

/* The key of a kernel stack of this many bytes. */
inline_ u64 key_of_kernel_frames(struct stack *s, u32 bytes)
{
	u64 hash = 0;

	s->depth = bytes / 8;
	s->end = bytes >= stack_depth * 8 ? STACK_END_DEPTH : STACK_END_OPEN;
	s->guessed = 0;
	s->image = 0;
	for (u32 i = 0; i < STACK_DEPTH; i++) {
		if (i >= bytes / 8)
			break;
		hash = walk_hash(hash, s->ip[i]);
	}
	return stack_key(s, hash);
}

/* Of one in the scratch. A function of its own, for the verifier's sake. */
__noinline u64 kernel_stack_key(u32 bytes)
{
	struct stack *s = cpu_slot(&stack_scratch);

	return s ? key_of_kernel_frames(s, bytes) : 0;
}

/* Of the kernel stack in the scratch: its key in `stacks`; 0: there is none. */
inline_ u64 kernel_stack_id(long bytes)
{
	return bytes > 0 ? kernel_stack_key((u32)bytes) : 0;
}

/* Of a user stack that the kernel's own walker has left in current_walk(). */
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
	w->stack.image = STACK_IMAGE(w->program, 1);
	w->hash = 0;
	for (u32 i = 0; i < STACK_DEPTH; i++) {
		if (i >= depth)
			break;
		w->hash = walk_hash(w->hash, w->stack.ip[i]);
	}
	return 0;
}

/*
 * User stack of the running task, stored; its key in `stacks`, 0: there is none. `before`: its key
 * the last time, known to be stored.
 */
inline_ u64 stack_of_user(void *ctx, u64 before)
{
	struct walk *w = current_walk();
	u32 size = walk_leaf ? 8 : stack_depth * 8;
	long frames = walk_user();
	u64 id;

	if (!w)
		return 0;
	if (frames < 0 && size <= sizeof(w->stack.ip)) {
		frames = bpf_get_stack(ctx, w->stack.ip, size, BPF_F_USER_STACK);
		if (frames > 0)
			hash_user_stack((u32)frames / 8);
	}
	if (frames <= 0)
		return 0;
	id = stack_key(&w->stack, w->hash);
	if (stack_stored(id, before))
		return id;
	stack_store(&w->stack, id);
	meet_process(w);
	if (unwind_tables && w->unread)
		unwind_tell_unread();
	return id;
}

/* Kernel stack of the running program, stored. */
inline_ u64 stack_of_kernel(void *ctx, u64 before)
{
	struct stack *s = cpu_slot(&stack_scratch);
	u32 size = stack_depth * 8;
	u64 id;

	if (!s || size > sizeof(s->ip))
		return 0;
	id = kernel_stack_id(bpf_get_stack(ctx, s->ip, size, 0));
	if (id && !stack_stored(id, before))
		stack_store(s, id);
	return id;
}

/* Kernel stack of a task that does not run; *kept is where it lies, to be stored if it is new. */
inline_ u64 stack_of_blocked(struct task_struct *t, struct stack **kept)
{
	struct stack *s = cpu_slot(&stack_scratch);
	u32 size = stack_depth * 8;

	if (!s || size > sizeof(s->ip))
		return 0;
	*kept = s;
	return kernel_stack_id(bpf_get_task_stack(t, s->ip, size, 0));
}

/* Who it is; for a pointer that a BTF tracepoint gave. */
inline_ void party_of(struct stack_party *p, struct task_struct *t)
{
	p->tgid = task_tgid(t);
	p->tid = task_tid(t);
	task_comm(t, p->comm);
}

/* Its state, and whether it waits still, at once. */
inline_ u64 party_state(struct stack_party *p)
{
	return (u64)p->waiting << 32 | p->state;
}

inline_ u64 party_hash(struct stack_party *p)
{
	u64 *comm = (u64 *)p->comm;
	u64 h = p->kernel ^ p->user * 0x9e3779b97f4a7c15ULL ^
		((u64)p->tid << 32 | p->tgid) * 0xd6e8feb86659fd93ULL ^
		comm[0] * 0xff51afd7ed558ccdULL ^ comm[1] * 0xc4ceb9fe1a85ec53ULL ^ party_state(p);

	h ^= h >> 32;
	return h * 0x9e3779b97f4a7c15ULL;
}

inline_ bool party_equal(struct stack_party *a, struct stack_party *b)
{
	return a->kernel == b->kernel && a->user == b->user && a->tid == b->tid &&
	       party_state(a) == party_state(b);
}

/*
 * Adds n events to the sum of these parties; the sum in `entry` is 0. `kernel` holds the frames of
 * the first one's kernel stack where they are not stored yet, or is NULL.
 */
inline_ void stack_add_n(struct stack_row *entry, struct stack *kernel, u64 ns, u64 n)
{
	u64 id = 0;
	struct stack_row *e;

	for (int i = 0; i < STACK_PARTIES; i++)
		id = (id ^ id >> 29) * 0xbf58476d1ce4e5b9ULL ^ party_hash(&entry->party[i]);
	e = bpf_map_lookup_elem(&stack_counts, &id);
	/* A key that is known has had its stack stored. */
	if ((!e || stack_missed) && kernel && entry->party[0].kernel)
		stack_store(kernel, entry->party[0].kernel);
	if (!e) {
		bpf_map_update_elem(&stack_counts, &id, entry, BPF_NOEXIST);
		e = bpf_map_lookup_elem(&stack_counts, &id);
	}
	/* Others with the same hash: improbable, but never to be shown as these. */
	for (int i = 0; i < STACK_PARTIES; i++) {
		if (!e || !party_equal(&e->party[i], &entry->party[i])) {
			count_n(LEDGER_UNTRACKED, n);
			return;
		}
	}
	if (ns) /* of a constant 0 the compiler makes an instruction that 5.10 does not have */
		__sync_fetch_and_add(&e->sum.total_ns, ns);
	__sync_fetch_and_add(&e->sum.count, n);
}

inline_ void stack_add(struct stack_row *entry, struct stack *kernel, u64 ns)
{
	stack_add_n(entry, kernel, ns, 1);
}

#endif
