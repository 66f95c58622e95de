/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks by task: programs on user functions can be preempted since 6.0 (8c7dcb84e3b7), also by
 * others of them in another task. Before task storage, walks are by CPU.
 *
 * Contexts: tasks, preemptible.
 */
#ifndef CORETAP_TASK_WALK_BPF_H
#define CORETAP_TASK_WALK_BPF_H

#include "lib/stack/walk_state.bpf.h"

CPU_SLOTS(walk_scratch, struct walk);

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct walk);
} task_walks SEC(".maps");

inline_ struct walk *current_walk(void)
{
	if (has_task_storage())
		return bpf_task_storage_get(&task_walks, bpf_get_current_task_btf(), 0,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);
	return cpu_slot(&walk_scratch);
}

#endif
