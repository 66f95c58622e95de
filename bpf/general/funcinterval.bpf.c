// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* funcinterval: time between consecutive calls. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/cpu.bpf.h"
#include "lib/core/exchange.bpf.h"
#include "lib/targets/each_target.bpf.h"
#include "general/funcinterval.h"

OPT(bool, per_cpu);
OPT(bool, per_thread);
OPT(__u64, intervals_step);

TARGET_SLOTS(intervals, struct hist)

/* Time of each target's last call; if shared by all CPUs, in the first CPU's slots. */
TARGET_SLOTS(calls, u64)

struct thread_calls {
	u64 last[FUNCINTERVAL_TARGETS];
};

TASK_SLOT(struct thread_calls)

inline_ u64 *last_call(u64 id)
{
	struct thread_calls *t;
	u64 *all;
	u32 first = 0;

	if (per_thread) {
		t = current_slot(true);
		barrier_var(id);
		return t && id < FUNCINTERVAL_TARGETS ? &t->last[id] : NULL;
	}
	if (per_cpu)
		return calls_of(id);
	all = bpf_map_lookup_elem(&calls_cpus, &first);
	barrier_var(id);
	return all && id < target_count ? &all[id] : NULL;
}

inline_ int at_target(void *ctx, u64 id, bool user)
{
	u64 *last, before, now;
	struct hist *h;

	if (id >= target_count || !keep_here())
		return 0;
	last = last_call(id);
	if (!last)
		return 0;
	now = bpf_ktime_get_ns();
	before = exchange(last, now);
	/* Another CPU has stored a later call: keep that as the last one. */
	if (before > now)
		exchange(last, before);
	h = intervals_of(id);
	if (before && h)
		hist_log2(h, since(before, now), 1, intervals_step);
	return 0;
}
