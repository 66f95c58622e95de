/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time of each CPU in interrupts and softirqs, one inside another counted once. The time of
 * softirqs in ksoftirqd is included.
 *
 * Contexts: interrupts, and sched_switch.
 */
#ifndef CORETAP_EACH_IRQ_TIME_BPF_H
#define CORETAP_EACH_IRQ_TIME_BPF_H

#include "lib/core/since.bpf.h"
#include "lib/sched/each_irq.bpf.h"

struct irq_time {
	u64 ns; /* since tracing began */
	u64 start;
	u64 depth; /* of what is under way */
};

CPU_SLOTS(irq_times, struct irq_time);

inline_ int irq_time_starts(void)
{
	struct irq_time *cpu = cpu_slot(&irq_times);

	if (cpu && !cpu->depth++)
		cpu->start = bpf_ktime_get_ns();
	return 0;
}

inline_ void irq_time_until(struct irq_time *cpu, u64 now)
{
	u64 from = cpu->start > tracing_since ? cpu->start : tracing_since;

	if (tracing_since)
		cpu->ns += since(from, now);
}

inline_ int irq_time_ends(void)
{
	struct irq_time *cpu = cpu_slot(&irq_times);

	if (cpu && cpu->depth && !--cpu->depth)
		irq_time_until(cpu, bpf_ktime_get_ns());
	return 0;
}

/*
 * The time of this CPU, at a switch. An interrupt does not switch: one that seems to be under way
 * is a softirq of PREEMPT_RT that is preempted, or its end was not seen.
 */
inline_ struct irq_time *irq_time_at_switch(u64 now)
{
	struct irq_time *cpu = cpu_slot(&irq_times);

	if (cpu && cpu->depth) {
		cpu->depth = 0;
		irq_time_until(cpu, now);
	}
	return cpu;
}

/* That of another CPU so far. */
inline_ u64 irq_now(u32 cpu)
{
	struct irq_time *t = bpf_map_lookup_elem(&irq_times, &cpu);

	return t ? *(volatile u64 *)&t->ns : 0;
}

inline_ int irq_starts(u64 *ctx)
{
	return irq_time_starts();
}

inline_ int irq_ends(u64 *ctx, const char *name, bool spurious)
{
	return irq_time_ends();
}

PROGRAM(on_softirq_entry, "tp_btf/softirq_entry", irq_time_starts())
PROGRAM(on_softirq_exit, "tp_btf/softirq_exit", irq_time_ends())

#endif
