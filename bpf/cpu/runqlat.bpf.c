// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* runqlat: time that runnable tasks wait for a CPU. */
#include "lib/aggregate.bpf.h"
#include "lib/run_delay.bpf.h"
#include "cpu/runqlat.h"

OPT(bool, by_pid);
OPT(bool, by_tid);
OPT(bool, by_pidns);

HISTOGRAM(delays, struct runqlat_key)

inline_ void at_switch(struct task_struct *prev, u64 now)
{
}

inline_ void waited(u64 *ctx, struct task_struct *next, u64 ns, u64 queued)
{
	struct runqlat_key key = {};

	if (by_pid)
		key.pid = task_tgid(next);
	if (by_tid)
		key.tid = task_tid(next);
	if (by_pid || by_tid)
		task_comm(by_tid ? next : next->group_leader, key.comm);
	if (by_pidns)
		key.pidns = BPF_CORE_READ(next, nsproxy, pid_ns_for_children, ns.inum);
	delays_add(&key, ns);
}
