// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* funccount: calls of functions, tracepoints and USDT probes. */
#include "lib/cpu.bpf.h"
#include "lib/filter.bpf.h"
#include "lib/target.bpf.h"
#include "general/funccount.h"

TARGET_SLOTS(calls, struct funccount_counts)

inline_ int count_call(void *ctx, u64 id)
{
	struct funccount_counts *c;

	if (id >= target_count || !keep_cpu(bpf_get_smp_processor_id()) || !keep_current())
		return 0;
	c = calls_of(id);
	if (c)
		__sync_fetch_and_add(&c->count, 1); /* an interrupt may count the same */
	return 0;
}

ON_TARGETS(count_call)
