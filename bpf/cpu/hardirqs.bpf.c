// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* hardirqs: number of interrupt handler runs, and their time. */
#include "lib/core/cpu.bpf.h"
#include "lib/aggregate/extreme.bpf.h"
#include "lib/sched/each_irq.bpf.h"
#include "cpu/hardirqs.h"

OPT(bool, by_cpu);
OPT(bool, distributed);
OPT(bool, counts_only); /* starts are not traced */

CPU_TABLE(handlers, struct hardirqs_key, struct hardirqs_value)
KEPT(handlers, struct hardirqs_key, struct hardirqs_value)
HISTOGRAM(durations, struct hardirqs_key)
CPU_SPAN(interrupt)

inline_ int irq_starts(u64 *ctx)
{
	return !counts_only && keep_here() ? interrupt_start() : 0;
}

inline_ void complete(struct hardirqs_key *key, const char *name)
{
	bpf_probe_read_kernel_str(key->name, sizeof(key->name), name);
	if (by_cpu)
		key->cpu = bpf_get_smp_processor_id();
}

inline_ int irq_ends(u64 *ctx, const char *name, bool spurious)
{
	u32 irq = ctx[0];
	struct hardirqs_key key = { .irq = irq };
	struct hardirqs_value *v;
	u64 ns = 0;

	if (counts_only ? !keep_here() : !interrupt_ended(&ns))
		return 0;
	if (distributed) {
		complete(&key, name);
		return durations_add(&key, ns);
	}
	v = handlers_kept(irq, (u64)name);
	if (!v) {
		complete(&key, name);
		v = handlers_keep(irq, (u64)name, &key);
	}
	if (!v)
		return 0;
	v->count++;
	v->spurious += spurious;
	v->total_ns += ns;
	extreme_add(&v->longest, ns);
	return 0;
}
