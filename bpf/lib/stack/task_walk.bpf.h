/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks of programs that can be preempted: programs at user functions since 6.0 (8c7dcb84e3b7).
 * Another task's program, or one in an interrupt, may then walk in the middle of this walk.
 *
 * Each CPU has a walk. While it is in use, others take one of WALKS_SHARED; the task's storage
 * has its number. The storage cannot have the walk: kernels that allocate it with
 * kmalloc_nolock() have no room for more than two pages. Before task storage there is only the
 * CPU's walk: no task preempts another's program.
 *
 * Contexts: tasks, preemptible, and interrupts.
 */
#ifndef CORETAP_TASK_WALK_BPF_H
#define CORETAP_TASK_WALK_BPF_H

#include "lib/core/exchange.bpf.h"
#include "lib/stack/walk_state.bpf.h"

#define WALK_TRIES 4 /* shared walks that are tried */

/* WALKS_SHARED, and one per CPU behind them. */
CPU_SLOTS(walk_scratch, struct walk);

/* The number of the running task's shared walk, from 1; 0: it has the CPU's. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} task_walks SEC(".maps");

inline_ u64 *shared_walk(u32 flags)
{
	if (!has_task_storage())
		return NULL;
	return bpf_task_storage_get(&task_walks, bpf_get_current_task_btf(), 0, flags);
}

inline_ struct walk *current_walk(void)
{
	u32 at = bpf_get_smp_processor_id() + WALKS_SHARED;
	u64 *shared = shared_walk(0);

	if (shared && *shared)
		at = (u32)*shared - 1;
	return bpf_map_lookup_elem(&walk_scratch, &at);
}

/* Claims the walk at this place of the map, as number `shared`. */
inline_ struct walk *claim_walk_at(u32 at, u64 shared)
{
	struct walk *w = bpf_map_lookup_elem(&walk_scratch, &at);
	u64 *number;

	if (!w || exchange(&w->used, true))
		return NULL;
	number = shared_walk(0);
	w->interrupted = number ? *number : 0;
	if (number)
		*number = shared;
	return w;
}

inline_ struct walk *claim_walk(void)
{
	u32 cpu = bpf_get_smp_processor_id(), at;
	struct walk *w;

	w = claim_walk_at(cpu + WALKS_SHARED, 0);
	if (w)
		return w;
	if (shared_walk(BPF_LOCAL_STORAGE_GET_F_CREATE)) {
		for (u32 i = 0; i < WALK_TRIES; i++) {
			at = (cpu * WALK_TRIES + i) % WALKS_SHARED;
			w = claim_walk_at(at, at + 1);
			if (w)
				return w;
		}
	}
	count(LEDGER_STACK_FAILED);
	return NULL;
}

inline_ void release_walk(struct walk *w)
{
	u64 *number = shared_walk(0);

	if (number)
		*number = w->interrupted;
	exchange(&w->used, false);
}

#endif
