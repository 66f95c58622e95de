// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cpudist: how long tasks stay on their CPUs at a time, or off them. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/sched/stint.bpf.h"
#include "cpu/cpudist.h"

OPT(bool, by_pid);
OPT(bool, by_tid);
OPT(bool, include_idle);
OPT(__u32, wanted_switch); /* enum switch_type */
OPT(bool, by_type);

struct off_cpu {
	u64 start; /* 0: on a CPU, or not wanted */
	u64 type;
};

TASK_SLOT(struct off_cpu);
HISTOGRAM(stints, struct cpudist_key)

/* The task may be given by a tracepoint or be current_task(). */
inline_ void add(struct task_struct *t, u64 ns, enum switch_type type)
{
	struct cpudist_key key = { .type = by_type ? type : SWITCH_ANY };
	struct task_struct *leader;

	if (by_pid || by_tid) {
		leader = BPF_CORE_READ(t, group_leader);
		bpf_core_read_str(key.comm, sizeof(key.comm), by_tid ? &t->comm : &leader->comm);
		if (by_pid)
			key.pid = view_pidns ? pid_seen(BPF_CORE_READ(leader, thread_pid)) :
					       BPF_CORE_READ(t, tgid);
		if (by_tid)
			key.tid = view_pidns ? pid_seen(BPF_CORE_READ(t, thread_pid)) :
					       BPF_CORE_READ(t, pid);
	}
	stints_add_of_task(&key, ns, t);
}

inline_ bool wanted(struct task_struct *t, u32 pid)
{
	return (include_idle || pid) && keep_task(t);
}

inline_ bool wanted_type(enum switch_type type)
{
	if (!wanted_switch || type == wanted_switch)
		return true;
	return filtered();
}

inline_ enum switch_type type_of(u64 *ctx)
{
	return left_state(ctx) ? SWITCH_VOLUNTARY : SWITCH_PREEMPTED;
}

TRACING(on_switch, "tp_btf/sched_switch")
{
	struct task_struct *prev = (void *)ctx[1];
	u64 now = bpf_ktime_get_ns(), ns;

	if (wanted(prev, prev->pid) && stint_ended(prev, now, &ns) && wanted_type(type_of(ctx)))
		add(prev, ns, type_of(ctx));
	stint_starts(ctx[2], now);
	return 0;
}

/*
 * When tracing starts, and at the end of each interval: stints in progress are split
 * here. Their type of switch is not known yet: if it matters, they are not split.
 */
SEC("run/each_cpu")
int on_interval(void *ctx)
{
	struct task_struct *t = current_task();
	u64 now = bpf_ktime_get_ns(), ns;

	if ((wanted_switch || by_type) && stint_known())
		return 0;
	if (wanted(t, BPF_CORE_READ(t, pid)) && stint_ended(t, now, &ns))
		add(t, ns, SWITCH_ANY);
	stint_starts((u64)t, now);
	return 0;
}

TRACING(off_switch, "tp_btf/sched_switch")
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u64 now = bpf_ktime_get_ns();
	struct off_cpu *off;

	if (wanted(prev, prev->pid) && wanted_type(type_of(ctx))) {
		off = task_slot_make(prev);
		if (off) {
			if (end_missed(off->start)) /* the kernel skipped the switch to it */
				count(LEDGER_UNMATCHED);
			off->start = now;
			off->type = type_of(ctx);
		}
	}
	off = task_slot(next);
	if (!off || !off->start)
		return 0;
	add(next, since(off->start, now), off->type);
	off->start = 0;
	return 0;
}
