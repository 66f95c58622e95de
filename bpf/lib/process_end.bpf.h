/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The end of a process, once, at sched_process_exit. Context: preemptible, the task that ends. */
#ifndef CORETAP_PROCESS_END_BPF_H
#define CORETAP_PROCESS_END_BPF_H

#include "lib/task.bpf.h"

struct ended_process {
	u64 start_time;
	u64 tgid;
};

/* Processes whose end one of their threads has reported; the loader knows the map's name. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct ended_process);
	__type(value, u8);
} ended_processes SEC(".maps");

/*
 * Has it never had another thread? One that is gone has been counted off nr_threads, but before
 * that it has added its times under this lock, whose count of writers only grows.
 */
inline_ bool single_thread(struct signal_struct *s)
{
	return *(volatile int *)&s->nr_threads == 1 && !s->stats_lock.seqcount.seqcount.sequence;
}

/*
 * Does the process end with this thread? Since 6.18 (the tracepoint's second argument) the kernel
 * says so. Before, all threads that end together find the process counted off: do_exit() lowers
 * signal->live, then frees the memory, then comes to the tracepoint. The first of them stands for
 * the process.
 */
inline_ bool process_ends(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[0];
	struct ended_process process = {};
	u8 ended = 1;

	if (!last_thread_exits(ctx))
		return false;
	if (tp_args_sched_process_exit >= 2 || single_thread(t->signal))
		return true;
	process.start_time = t->group_leader->start_time;
	process.tgid = task_tgid(t);
	return !bpf_map_update_elem(&ended_processes, &process, &ended, BPF_NOEXIST);
}

#endif
