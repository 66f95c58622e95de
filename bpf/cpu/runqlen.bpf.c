// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* runqlen: number of tasks waiting for each CPU, at each clock tick. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/sched/runqueue.bpf.h"
#include "cpu/runqlen.h"

HISTOGRAM_BY(lengths, struct runqlen_key, hist_linear)

SEC("perf_event/cpu-clock")
int on_tick(void *ctx)
{
	struct runqlen_key key = { .cpu = bpf_get_smp_processor_id() };
	struct task_struct *t = current_task();
	u32 n;

	if (!keep_current())
		return 0;
	n = runnable_on(rq_of(t));
	/* The running task does not wait; an idle CPU has none. */
	if (n && BPF_CORE_READ(t, pid))
		n--;
	return lengths_add(&key, n);
}
