// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cpuwalk: how long each CPU runs tasks. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/sched/stint.bpf.h"
#include "cpu/cpuwalk.h"

OPT(bool, by_node);

TABLE(cpus, struct cpuwalk_key, struct cpuwalk_value)

inline_ void ran(u64 ns)
{
	struct cpuwalk_key key = { .number = by_node ? bpf_get_numa_node_id() :
						       bpf_get_smp_processor_id() };
	struct cpuwalk_value *v = cpus_row(&key);

	if (!v)
		return;
	__sync_fetch_and_add(&v->stints, 1);
	__sync_fetch_and_add(&v->busy_ns, ns);
}

TRACING(on_switch, "tp_btf/sched_switch")
{
	struct task_struct *prev = (void *)ctx[1];
	u64 now = bpf_ktime_get_ns(), ns;

	if (prev->pid && keep_task(prev) && stint_ended(prev, now, &ns))
		ran(ns);
	stint_starts(ctx[2], now);
	return 0;
}

/* When tracing starts, and at the end of each interval: stints in progress are split here. */
SEC("run/each_cpu")
int on_interval(void *ctx)
{
	struct task_struct *t = current_task();
	u64 now = bpf_ktime_get_ns(), ns;

	if (BPF_CORE_READ(t, pid) && keep_task(t) && stint_ended(t, now, &ns))
		ran(ns);
	stint_starts((u64)t, now);
	return 0;
}
