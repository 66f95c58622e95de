// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* runqlat: time that runnable tasks wait for a CPU. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/pidns.bpf.h"
#include "lib/sched/run_delay.bpf.h"
#include "cpu/runqlat.h"

OPT(bool, by_pid);
OPT(bool, by_tid);
OPT(bool, by_pidns);

HISTOGRAM(delays, struct runqlat_key)

inline_ void at_switch(u64 *ctx, struct task_struct *prev, u64 now)
{
}

inline_ int add_part(struct runqlat_key *key, enum wait_part part, u64 ns, struct task_struct *t)
{
	key->part = part;
	return delays_add_of_task(key, ns, t);
}

inline_ int add_wait(u64 *ctx, struct task_struct *t, struct waited *w)
{
	struct runqlat_key key = {};

	if (by_pid)
		key.pid = task_tgid(t);
	if (by_tid)
		key.tid = task_tid(t);
	if (by_pid || by_tid)
		task_comm(by_tid ? t : t->group_leader, key.comm);
	if (by_pidns)
		key.pidns = pidns_of(t);
	if (!affinity)
		return delays_add_of_task(&key, w->ns, t);
	if (!w->idle_known)
		return add_part(&key, WAIT_UNKNOWN, w->ns, t);
	if (w->idle_ns > w->warm_ns)
		add_part(&key, WAIT_CPU_IDLE, w->idle_ns - w->warm_ns, t);
	if (w->warm_ns)
		add_part(&key, WAIT_CACHE_WARM, w->warm_ns, t);
	if (w->quota_ns)
		add_part(&key, WAIT_QUOTA, w->quota_ns, t);
	if (w->ns > w->idle_ns + w->quota_ns)
		add_part(&key, WAIT_CPUS_BUSY, w->ns - w->idle_ns - w->quota_ns, t);
	return 0;
}
