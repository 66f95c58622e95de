/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sums by the stacks of one or more tasks: the measured one, then its wakers. The
 * loader's part is StackReport (include/coretap/reports.hpp).
 *
 * Contexts: as stack.bpf.h. Counts UNTRACKED.
 */
#ifndef CORETAP_STACK_COUNTS_BPF_H
#define CORETAP_STACK_COUNTS_BPF_H

#include "lib/stack/stack.bpf.h"

/* Its state, and whether it still waits, in one word. */
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
 * Adds n events to the entry of these tasks; the sum in `entry` is 0. `kernel` has
 * the frames of the first task's kernel stack if they are not stored yet, or is NULL.
 */
inline_ int add_stacks(void *map, void *entry, const u32 tasks, struct stack *kernel, u64 ns, u64 n)
{
	struct stack_party *party = (void *)((struct stack_sum *)entry + 1), *known;
	struct stack_sum *e;
	u64 id = 0;

	for (u32 i = 0; i < tasks; i++)
		id = (id ^ id >> 29) * 0xbf58476d1ce4e5b9ULL ^ party_hash(&party[i]);
	e = bpf_map_lookup_elem(map, &id);
	/* For a known key the stack has been stored. */
	if ((!e || stack_missed) && kernel && party[0].kernel)
		stack_store(kernel, party[0].kernel);
	if (!e) {
		bpf_map_update_elem(map, &id, entry, BPF_NOEXIST);
		e = bpf_map_lookup_elem(map, &id);
	}
	/* Other tasks with the same hash: improbable, but must not be counted as these. */
	for (u32 i = 0; i < tasks; i++) {
		known = e ? (void *)(e + 1) : NULL;
		if (!known || !party_equal(&known[i], &party[i])) {
			count_n(LEDGER_UNTRACKED, n);
			return 0;
		}
	}
	if (ns) /* for a constant 0 the compiler emits an instruction that 5.10 lacks */
		__sync_fetch_and_add(&e->total_ns, ns);
	__sync_fetch_and_add(&e->count, n);
	return 0;
}

/* The map, its rows of this many tasks each, and the functions that add to them. */
#define STACK_COUNTS(tasks)                                                                   \
	struct stack_row {                                                                    \
		struct stack_sum sum;                                                         \
		struct stack_party party[tasks];                                              \
	};                                                                                    \
	MAP(HASH, stack_counts, 1, u64, struct stack_row);                                    \
	inline_ int stack_add_n(struct stack_row *entry, struct stack *kernel, u64 ns, u64 n) \
	{                                                                                     \
		return add_stacks(&stack_counts, entry, tasks, kernel, ns, n);                \
	}                                                                                     \
	inline_ int stack_add(struct stack_row *entry, struct stack *kernel, u64 ns)          \
	{                                                                                     \
		return stack_add_n(entry, kernel, ns, 1);                                     \
	}

#endif
