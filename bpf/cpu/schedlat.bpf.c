// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* schedlat: switches, run time, and waits for a CPU, by task. */
#include "lib/aggregate/extreme.bpf.h"
#include "lib/sched/run_delay.bpf.h"
#include "lib/sched/stint.bpf.h"
#include "cpu/schedlat.h"

CPU_TABLE(tasks, struct schedlat_key, struct schedlat_value)

inline_ struct schedlat_value *value_of(struct task_struct *t)
{
	struct schedlat_key key = { .pid = task_tgid(t), .tid = task_tid(t) };

	task_comm(t, key.comm);
	return tasks_row_of_task(&key, t);
}

/* 18 bits, the more the longer: exact below 2^12, then to one part in 2^12. */
inline_ u64 length_code(u64 ns)
{
	const u32 bits = 12;
	u32 power;

	if (ns >> bits == 0)
		return ns;
	power = log2_u64(ns) - bits;
	return (u64)(power + 1) << bits | (ns >> power & ((1 << bits) - 1));
}

inline_ int add_wait(u64 *ctx, struct task_struct *t, struct waited *w)
{
	struct schedlat_value *v = value_of(t);

	if (!v)
		return 0;
	extreme_add(&v->longest, w->ns);
	extreme_add(&v->moment, length_code(w->ns) << SCHEDLAT_MOMENT_BITS |
					bpf_ktime_get_ns() / 1000000 % SCHEDLAT_MOMENTS);
	v->wait_ns += w->ns;
	if (affinity && w->idle_known) {
		v->idle_ns += w->idle_ns;
		v->warm_ns += w->warm_ns;
		v->quota_ns += w->quota_ns;
	} else if (affinity) {
		v->unknown_ns += w->ns;
	}
	v->waits++;
	return 0;
}

inline_ bool wanted(struct task_struct *t, u32 pid)
{
	return pid && (!filter.on || filter_matches(t));
}

/* Stints are by the clock of on_interval(), which at_switch() need not be called with. */
inline_ void at_switch(u64 *ctx, struct task_struct *prev, u64 other_clock)
{
	u64 now = bpf_ktime_get_ns(), ns = 0;
	struct schedlat_value *v;

	if (wanted(prev, prev->pid)) {
		v = value_of(prev);
		if (v) {
			if (stint_ended(prev, now, &ns))
				v->run_ns += ns;
			if (left_state(ctx))
				v->voluntary++;
			else
				v->preempted++;
		}
	}
	stint_starts(ctx[2], now);
}

/* When tracing starts, and at the end of each interval: what has run until now. */
SEC("run/each_cpu")
int on_interval(void *ctx)
{
	struct task_struct *t = current_task();
	struct schedlat_key key = {};
	u64 now = bpf_ktime_get_ns(), ns;
	struct schedlat_value *v;

	if (wanted(t, BPF_CORE_READ(t, pid)) && stint_ended(t, now, &ns)) {
		key.pid = process_of(t);
		key.tid = thread_of(t);
		bpf_core_read_str(key.comm, sizeof(key.comm), &t->comm);
		v = tasks_row_of_task(&key, t);
		if (v)
			v->run_ns += ns;
	}
	stint_starts((u64)t, now);
	return 0;
}
