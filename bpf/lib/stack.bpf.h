/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stacks: kept once each in an ordinary hash map, so that none is lost to another's bucket. */
#ifndef CORETAP_STACK_BPF_H
#define CORETAP_STACK_BPF_H

#include "lib/emit.bpf.h"
#include "lib/task.bpf.h"
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

/*
 * Address spaces whose process the loader has been told of. Addresses are used again: the value
 * tells by whom.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u64);
} stack_known_mms SEC(".maps");

inline_ u64 stack_hash(struct stack *s, u32 depth)
{
	u64 h = depth + 1;

	for (u32 i = 0; i < STACK_DEPTH; i++) {
		if (i >= depth)
			break;
		h = (h ^ s->ip[i]) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 32;
	}
	return h ? h : 1; /* 0 means no stack */
}

/* A stack could not be stored: none is taken for stored from here on. The loader counts what is
 * shown without one. */
bool stack_missed;

inline_ void stack_store(struct stack *s, u64 id)
{
	if (!bpf_map_lookup_elem(&stacks, &id) &&
	    bpf_map_update_elem(&stacks, &id, s, BPF_NOEXIST) &&
	    !bpf_map_lookup_elem(&stacks, &id)) /* else another CPU was first */
		stack_missed = true;
}

inline_ bool stack_stored(u64 id, u64 before)
{
	return id == before && !stack_missed;
}

/* The hash of what lies in the scratch: a function of its own, for the verifier's sake. */
__noinline u64 hash_scratch(u32 depth)
{
	struct stack *s = cpu_slot(&stack_scratch);

	return s ? stack_hash(s, depth) : 0;
}

#ifdef STACK_OF_TASK
__noinline u64 hash_user_scratch(u32 depth)
{
	struct stack *s = user_scratch();

	return s ? stack_hash(s, depth) : 0;
}
#else
#define hash_user_scratch(depth) hash_scratch(depth)
#endif

inline_ bool stack_walked(struct stack *s, long bytes)
{
	if (bytes <= 0)
		return false;
	s->depth = (u32)bytes / 8;
	s->end = bytes >= stack_bytes ? STACK_END_DEPTH : STACK_END_OPEN;
	return true;
}

/* Of the stack in the scratch: its key in `stacks`; 0: there is none. */
inline_ u64 stack_id(struct stack *s, long bytes)
{
	return stack_walked(s, bytes) ? hash_scratch(s->depth) : 0;
}

inline_ u64 user_stack_id(struct stack *s, long bytes)
{
	return stack_walked(s, bytes) ? hash_user_scratch(s->depth) : 0;
}

/* What tells a program that runs from another one in the same address space, or from a later one.
 */
#define program_of(tgid, exec_id) ((u64)(tgid) << 32 | (u32)(exec_id))

/* The loader hears of each process once, while its maps are there to be read. */
inline_ void tell_process(u64 mm, u64 program)
{
	struct task_struct *current;
	struct stack_process *p;
	u64 *known;

	known = bpf_map_lookup_elem(&stack_known_mms, &mm);
	if (known && *known == program)
		return;
	p = bpf_ringbuf_reserve(&events, sizeof(*p), 0);
	if (!p)
		return; /* next time */
	current = current_task();
	p->tgid = current_tgid();
	p->forked_from = 0;
	/* exec counts up the one and leaves the other, which fork has copied from the parent. */
	if (BPF_CORE_READ(current, self_exec_id) == BPF_CORE_READ(current, parent_exec_id))
		p->forked_from = view_pidns ? pid_seen(BPF_CORE_READ(current, real_parent,
								     group_leader, thread_pid)) :
					      BPF_CORE_READ(current, real_parent, tgid);
	bpf_ringbuf_submit(p, BPF_RB_FORCE_WAKEUP);
	bpf_map_update_elem(&stack_known_mms, &mm, &program, BPF_ANY);
}

/* User stack of the running task, in the scratch; its key in `stacks`. */
inline_ u64 stack_of_user_walked(void *ctx, struct stack *s)
{
	u32 size = stack_bytes;
	long bytes;

	if (!s || size > sizeof(s->ip))
		return 0;
	bytes = walk_user(size / 8);
	if (bytes < 0)
		bytes = bpf_get_stack(ctx, s->ip, size, BPF_F_USER_STACK);
	return user_stack_id(s, bytes);
}

/*
 * User stack of the running task, stored; `mm` and `program` are its own. `before`: its id the last
 * time, known to be stored.
 */
inline_ u64 stack_of_user(void *ctx, u64 mm, u64 program, u64 before)
{
	struct stack *s = user_scratch();
	u64 id = mm ? stack_of_user_walked(ctx, s) : 0;

	if (!s || !id || stack_stored(id, before))
		return id;
	stack_store(s, id);
	tell_process(mm, program);
	return id;
}

/* The same for a pointer that a BTF tracepoint gave. */
inline_ u64 stack_of_task_user(void *ctx, struct task_struct *current, u64 before)
{
	return stack_of_user(ctx, (u64)current->mm,
			     program_of(current->tgid, current->self_exec_id), before);
}

/* The same where the task is not given. */
inline_ u64 stack_of_current_user(void *ctx, u64 before)
{
	struct task_struct *t = current_task();
	u64 tgid = bpf_get_current_pid_tgid() >> 32;

	return stack_of_user(ctx, (u64)BPF_CORE_READ(t, mm),
			     program_of(tgid, BPF_CORE_READ(t, self_exec_id)), before);
}

/* The same for programs on user functions: who the task is matters for a new stack only. */
inline_ u64 stack_of_caller(void *ctx, u64 before)
{
	struct stack *s = user_scratch();
	u64 id = stack_of_user_walked(ctx, s);
	struct task_struct *t;

	if (!s || !id || stack_stored(id, before))
		return id;
	t = current_task();
	stack_store(s, id);
	tell_process((u64)BPF_CORE_READ(t, mm),
		     program_of(bpf_get_current_pid_tgid() >> 32, BPF_CORE_READ(t, self_exec_id)));
	return id;
}

/* Kernel stack of the running program, stored. */
inline_ u64 stack_of_kernel(void *ctx, u64 before)
{
	struct stack *s = cpu_slot(&stack_scratch);
	u32 size = stack_bytes;
	u64 id;

	if (!s || size > sizeof(s->ip))
		return 0;
	id = stack_id(s, bpf_get_stack(ctx, s->ip, size, 0));
	if (id && !stack_stored(id, before))
		stack_store(s, id);
	return id;
}

/* Kernel stack of a task that does not run; *kept is where it lies, to be stored if it is new. */
inline_ u64 stack_of_blocked(struct task_struct *t, struct stack **kept)
{
	struct stack *s = cpu_slot(&stack_scratch);
	u32 size = stack_bytes;

	if (!s || size > sizeof(s->ip))
		return 0;
	*kept = s;
	return stack_id(s, bpf_get_task_stack(t, s->ip, size, 0));
}

/* Who it is; for a pointer that a BTF tracepoint gave. */
inline_ void party_of(struct stack_party *p, struct task_struct *t)
{
	p->tgid = task_tgid(t);
	p->tid = task_tid(t);
	task_comm(t, p->comm);
}

inline_ u64 party_hash(struct stack_party *p)
{
	u64 *comm = (u64 *)p->comm;
	u64 h = p->kernel ^ p->user * 0x9e3779b97f4a7c15ULL ^
		((u64)p->tid << 32 | p->tgid) * 0xd6e8feb86659fd93ULL ^
		comm[0] * 0xff51afd7ed558ccdULL ^ comm[1] * 0xc4ceb9fe1a85ec53ULL ^ p->state;

	h ^= h >> 32;
	return h * 0x9e3779b97f4a7c15ULL;
}

inline_ bool party_equal(struct stack_party *a, struct stack_party *b)
{
	return a->kernel == b->kernel && a->user == b->user && a->tid == b->tid &&
	       a->state == b->state;
}

/*
 * Adds to the sum of these parties; the sum in `entry` is 0. `kernel` holds the frames of the first
 * one's kernel stack where they are not stored yet, or is NULL.
 */
inline_ void stack_add(struct stack_row *entry, struct stack *kernel, u64 ns)
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
	/* Others with the same hash: not to be had by chance, but never to be shown as these. */
	for (int i = 0; i < STACK_PARTIES; i++) {
		if (!e || !party_equal(&e->party[i], &entry->party[i])) {
			count(LEDGER_UNTRACKED);
			return;
		}
	}
	if (ns) /* of a constant 0 the compiler makes an instruction that 5.10 does not have */
		__sync_fetch_and_add(&e->sum.total_ns, ns);
	__sync_fetch_and_add(&e->sum.count, 1);
}

#endif
