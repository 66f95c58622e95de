/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The filters that all tools share, applied to the measured task.
 *
 * Contexts: all, NMIs included. Counts FILTERED, UNTRACKED.
 */
#ifndef CORETAP_FILTER_BPF_H
#define CORETAP_FILTER_BPF_H

#include "lib/core/task.bpf.h"

const volatile struct task_filter filter = {};

MAP(HASH, filter_tgids, 1, u32, u8);
MAP(HASH, filter_tids, 1, u32, u8);
MAP(HASH, filter_uids, 1, u32, u8);

MAP(HASH, filter_comms, 1, char[COMM_LEN], u8);

/* For each byte, the positions in all name parts where it occurs (task_filter's name_first). */
const volatile __u64 filter_names[256] = {};

#define CGROUP_LEVELS 32

/* True if the task's cgroup in the default hierarchy is in the subtree of `wanted`. */
inline_ bool cgroup_under(struct cgroup *c, u64 wanted)
{
	for (int i = 0; i < CGROUP_LEVELS && c; i++) {
		if (BPF_CORE_READ(c, kn, id) == wanted)
			return true;
		/* css is the first member of struct cgroup, so a css's pointer is its cgroup's */
		c = (struct cgroup *)BPF_CORE_READ(c, self.parent);
	}
	return false;
}

inline_ bool task_in_cgroup(struct task_struct *t, u64 wanted)
{
	return cgroup_under(BPF_CORE_READ(t, cgroups, dfl_cgrp), wanted);
}

/*
 * Does the name contain one of the parts? One step per byte for all of them
 * (the shift-and algorithm): a bit is set if a part matches up to that byte.
 */
inline_ bool name_has_part(const char *comm)
{
	u64 matched = 0;

	for (int i = 0; i < COMM_LEN && comm[i]; i++) {
		matched = (matched << 1 | filter.name_first) & filter_names[(u8)comm[i]];
		if (matched & filter.name_last)
			return true;
	}
	return false;
}

inline_ bool filter_has_tgid(u32 tgid)
{
	return !filter.by_tgid || !!bpf_map_lookup_elem(&filter_tgids, &tgid) != filter.not_tgid;
}

/* The task may come from a tracepoint or be current_task(). */
inline_ bool filter_matches(struct task_struct *t)
{
	char comm[COMM_LEN] = {};
	u32 id;

	if (filter.by_tgid && !filter_has_tgid(process_of(t)))
		return false;
	if (filter.by_tid) {
		id = thread_of(t);
		if (!bpf_map_lookup_elem(&filter_tids, &id))
			return false;
	}
	if (filter.by_uid) {
		id = BPF_CORE_READ(t, cred, uid.val);
		if (!bpf_map_lookup_elem(&filter_uids, &id))
			return false;
	}
	if (filter.by_cgroup && !task_in_cgroup(t, filter.cgroup))
		return false;
	if (filter.by_comm || filter.by_name) {
		bpf_core_read_str(comm, sizeof(comm), &t->comm);
		if (filter.by_comm && !!bpf_map_lookup_elem(&filter_comms, comm) == filter.not_comm)
			return false;
		if (filter.by_name && !name_has_part(comm))
			return false;
	}
	return true;
}

/* Every tool calls this for the measured task, which may not be the running one. */
inline_ bool keep_task(struct task_struct *t)
{
	if (!filter.on || filter_matches(t))
		return true;
	return filtered();
}

inline_ bool keep_current(void)
{
	return !filter.on || keep_task(current_task());
}

/*
 * For `-- COMMAND`: children of a wanted process are wanted. Attached only then.
 * A child of another process may have the id of a wanted process that has ended.
 */
TRACING(filter_follow, "tp_btf/sched_process_fork")
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	u32 id = task_tgid(parent);
	u8 one = 1;

	if (child->tgid == parent->tgid)
		return 0; /* a thread */
	if (!bpf_map_lookup_elem(&filter_tgids, &id)) {
		id = task_tgid(child);
		bpf_map_delete_elem(&filter_tgids, &id);
		return 0;
	}
	id = task_tgid(child);
	if (id)
		map_put(&filter_tgids, &id, &one);
	return 0;
}

#endif
