// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* softirqs: number of softirq runs, and their time without nested hardware interrupts. */
#include "lib/core/cpu.bpf.h"
#include "lib/aggregate/extreme.bpf.h"
#include "lib/sched/each_irq.bpf.h"
#include "cpu/softirqs.h"

OPT(bool, by_cpu);
OPT(bool, distributed);
OPT(bool, counts_only); /* starts are not traced */

CPU_TABLE(vectors, struct softirqs_key, struct softirqs_value)
KEPT(vectors, struct softirqs_key, struct softirqs_value)
HISTOGRAM(durations, struct softirqs_key)

/* On PREEMPT_RT a softirq can run while another one of the CPU is preempted. */
struct softirq_cpu {
	u64 under_way; /* running ones, a bit for each */
	u64 irq_start; /* of the interrupt nested in a softirq; 0: none */
	u64 irq_ns;    /* sum of all interrupts nested in softirqs */
	struct {
		u64 start; /* 0: not running, or filtered */
		u64 irq_ns;
	} at[SOFTIRQ_SLOTS];
};

CPU_SLOTS(cpus, struct softirq_cpu);

inline_ bool ended(u32 vector, u64 *ns, u64 *irq_ns)
{
	struct softirq_cpu *cpu = cpu_slot(&cpus);
	u64 now = bpf_ktime_get_ns(), start;

	vector &= SOFTIRQ_SLOTS - 1;
	if (!cpu || !cpu->at[vector].start)
		return false;
	start = cpu->at[vector].start;
	cpu->at[vector].start = 0;
	cpu->under_way &= ~(1ULL << vector);
	*irq_ns = cpu->irq_ns - cpu->at[vector].irq_ns;
	*ns = since(start + *irq_ns, now);
	return true;
}

TRACING(on_exit, "tp_btf/softirq_exit")
{
	struct softirqs_key key = { .vector = ctx[0] };
	u64 ns = 0, irq_ns = 0;
	struct softirqs_value *v;

	if (counts_only ? !keep_here() : !ended(key.vector, &ns, &irq_ns))
		return 0;
	if (by_cpu)
		key.cpu = bpf_get_smp_processor_id();
	if (distributed)
		return durations_add(&key, ns);
	v = vectors_kept_row(key.vector, 0, &key);
	if (!v)
		return 0;
	v->count++;
	v->total_ns += ns;
	v->irq_ns += irq_ns;
	extreme_add(&v->longest, ns);
	return 0;
}

TRACING(on_entry, "tp_btf/softirq_entry")
{
	u32 vector = (u32)ctx[0] & (SOFTIRQ_SLOTS - 1);
	struct softirq_cpu *cpu;

	if (!keep_here())
		return 0;
	cpu = cpu_slot(&cpus);
	if (!cpu)
		return 0;
	if (end_missed(cpu->at[vector].start))
		count(LEDGER_UNMATCHED);
	cpu->under_way |= 1ULL << vector;
	cpu->at[vector].irq_ns = cpu->irq_ns;
	cpu->at[vector].start = bpf_ktime_get_ns();
	return 0;
}

inline_ int irq_ends(u64 *ctx, const char *name, bool spurious)
{
	struct softirq_cpu *cpu = cpu_slot(&cpus);

	if (!cpu || !cpu->irq_start)
		return 0;
	cpu->irq_ns += since(cpu->irq_start, bpf_ktime_get_ns());
	cpu->irq_start = 0;
	return 0;
}

inline_ int irq_starts(u64 *ctx)
{
	struct softirq_cpu *cpu = cpu_slot(&cpus);

	if (cpu && cpu->under_way)
		cpu->irq_start = bpf_ktime_get_ns();
	return 0;
}
