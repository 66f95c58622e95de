// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cpuwalk: which CPUs run tasks, at each tick of a clock. */
#include "lib/aggregate.bpf.h"
#include "lib/filter.bpf.h"
#include "cpu/cpuwalk.h"

OPT(bool, by_node);

TABLE(ticks, struct cpuwalk_key, struct cpuwalk_value)

SEC("perf_event/cpu-clock")
int on_tick(void *ctx)
{
	struct cpuwalk_key key = { .number = by_node ? bpf_get_numa_node_id() :
						       bpf_get_smp_processor_id() };
	struct cpuwalk_value *v;

	if (!BPF_CORE_READ(current_task(), pid) || !keep_current())
		return 0;
	v = ticks_row(&key);
	if (v)
		__sync_fetch_and_add(&v->busy, 1);
	return 0;
}
