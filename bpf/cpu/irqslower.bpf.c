// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* irqslower: slow interrupt handlers. */
#include "lib/core/cpu.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/sched/each_irq.bpf.h"
#include "cpu/irqslower.h"

RECORD(irqslower_event);

OPT(__u64, min_ns);
OPT(__u32, filter_irq);
OPT(bool, filter_irq_on);

CPU_SPAN(interrupt)

inline_ int irq_starts(u64 *ctx)
{
	if (filter_irq_on && (u32)ctx[0] != filter_irq)
		return filtered();
	if (!keep_here())
		return 0;
	return interrupt_start();
}

inline_ int irq_ends(u64 *ctx, const char *name, bool spurious)
{
	struct irqslower_event *e;
	u64 ns;

	if (!interrupt_ended(&ns))
		return 0;
	if (ns < min_ns)
		return filtered();
	e = emit_begin_stack(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	e->latency_ns = ns;
	identify_current(&e->who);
	e->irq = ctx[0];
	e->cpu = bpf_get_smp_processor_id();
	e->spurious = spurious;
	bpf_probe_read_kernel_str(e->name, sizeof(e->name), name);
	return emit_end_stack(ctx, e, sizeof(*e));
}
