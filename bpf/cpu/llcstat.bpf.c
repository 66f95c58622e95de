// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* llcstat: last-level cache references and misses, by process and CPU. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "cpu/llcstat.h"

OPT(bool, by_tid);

TABLE(counts, struct llcstat_key, struct llcstat_counts)

/* A sample counts as one full period of events. */
inline_ int add(struct bpf_perf_event_data *ctx, bool miss)
{
	struct task_struct *t = current_task();
	struct llcstat_counts *row;
	struct llcstat_key key = {};

	if (!keep_current())
		return 0;
	key.pid = current_tgid();
	key.cpu = bpf_get_smp_processor_id();
	if (by_tid)
		key.tid = current_tid();
	else
		t = BPF_CORE_READ(t, group_leader);
	bpf_core_read_str(key.comm, sizeof(key.comm), &t->comm);
	row = counts_row(&key);
	if (!row)
		return 0;
	__sync_fetch_and_add(&row->samples, 1);
	__sync_fetch_and_add(miss ? &row->misses : &row->references, ctx->sample_period);
	return 0;
}

SEC("perf_event/cache-references")
int on_reference(struct bpf_perf_event_data *ctx)
{
	return add(ctx, false);
}

SEC("perf_event/cache-misses")
int on_miss(struct bpf_perf_event_data *ctx)
{
	return add(ctx, true);
}
