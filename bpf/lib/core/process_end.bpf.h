/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The end of a process, once, at sched_process_exit. Contexts: the exiting task, preemptible. */
#ifndef CORETAP_PROCESS_END_BPF_H
#define CORETAP_PROCESS_END_BPF_H

#include "lib/core/task.bpf.h"

struct ended_process {
	u64 start_time;
	u64 tgid;
};

/* Processes whose end one of their threads has reported; the loader uses the map's name. */
MAP(LRU_HASH, ended_processes, 1, struct ended_process, u8);

/*
 * True if the process never had another thread. An exited thread no longer counts in
 * nr_threads, but it has added its times under this lock before, whose writer count only grows.
 */
inline_ bool single_thread(struct signal_struct *s)
{
	return *(volatile int *)&s->nr_threads == 1 && !s->stats_lock.seqcount.seqcount.sequence;
}

/*
 * Does the process end with this thread? Since 6.18 the tracepoint's
 * second argument says so. Before, all threads that exit together find
 * the count at 0: do_exit() lowers signal->live, then frees the memory,
 * then reaches the tracepoint. The first of them is used for the process.
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
