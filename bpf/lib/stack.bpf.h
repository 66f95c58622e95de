/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stacks: kept once each in an ordinary hash map, so that none is lost to another's bucket. */
#ifndef CORETAP_STACK_BPF_H
#define CORETAP_STACK_BPF_H

#include "lib/emit.bpf.h"
#include "lib/task.bpf.h"

OPT(bool, stack_kernel);
OPT(bool, stack_user);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct stack);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct stack_key);
	__type(value, struct stack_count);
} stack_counts SEC(".maps");

/* For programs that nothing of their kind can interrupt, such as sched_switch. */
CPU_SLOTS(stack_scratch, struct stack);

/* Address spaces whose process the loader has been told of. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u8);
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

/* Its key in `stacks`; 0: there is none. */
inline_ u64 stack_keep(struct stack *s, long bytes)
{
	u64 id;

	if (bytes <= 0)
		return 0;
	s->depth = (u32)bytes / 8;
	id = stack_hash(s, s->depth);
	if (!bpf_map_lookup_elem(&stacks, &id) &&
	    bpf_map_update_elem(&stacks, &id, s, BPF_NOEXIST) == -12 /* ENOMEM */)
		count(LEDGER_STACK_FAILED);
	return id;
}

/* Kernel stack of a task that does not run. */
inline_ u64 stack_of_blocked(struct task_struct *t)
{
	struct stack *s = cpu_slot(&stack_scratch);
	u32 size = stack_bytes;

	if (!s || size > sizeof(s->ip))
		return 0;
	return stack_keep(s, bpf_get_task_stack(t, s->ip, size, 0));
}

/* User stack of the current task; the loader hears of each process once, while it is there. */
inline_ u64 stack_of_user(void *ctx, struct task_struct *current)
{
	struct stack *s = cpu_slot(&stack_scratch);
	u64 mm = (u64)current->mm, id;
	u32 size = stack_bytes;
	u8 one = 1;

	if (!s || !mm || size > sizeof(s->ip))
		return 0;
	id = stack_keep(s, bpf_get_stack(ctx, s->ip, size, BPF_F_USER_STACK));
	if (id && !bpf_map_lookup_elem(&stack_known_mms, &mm)) {
		u32 *tgid = bpf_ringbuf_reserve(&events, sizeof(*tgid), 0);

		if (tgid) {
			*tgid = task_tgid(current);
			bpf_ringbuf_submit(tgid, BPF_RB_FORCE_WAKEUP);
			bpf_map_update_elem(&stack_known_mms, &mm, &one, BPF_ANY);
		}
	}
	return id;
}

inline_ void stack_count(struct stack_key *key, u64 ns)
{
	struct stack_count fresh = { .total_ns = ns, .count = 1 }, *c;

	c = bpf_map_lookup_elem(&stack_counts, key);
	if (!c) {
		if (!bpf_map_update_elem(&stack_counts, key, &fresh, BPF_NOEXIST))
			return;
		c = bpf_map_lookup_elem(&stack_counts, key); /* another CPU was first */
	}
	if (!c) {
		count(LEDGER_UNTRACKED);
		return;
	}
	__sync_fetch_and_add(&c->total_ns, ns);
	__sync_fetch_and_add(&c->count, 1);
}

#endif
