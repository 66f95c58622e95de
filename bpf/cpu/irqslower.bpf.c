// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* irqslower: slow interrupt handlers. */
#include "lib/core/cpu.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/program.bpf.h"
#include "cpu/irqslower.h"

OPT(__u64, min_ns);
OPT(__u32, filter_irq);
OPT(bool, filter_irq_on);

CPU_SPAN(interrupt)

inline_ int start(u64 *ctx)
{
	if (filter_irq_on && (u32)ctx[0] != filter_irq) {
		count(LEDGER_FILTERED);
		return 0;
	}
	if (!keep_this_cpu() || !keep_current())
		return 0;
	return interrupt_start();
}

inline_ int end(u64 *ctx, const char *name, bool spurious)
{
	struct irqslower_event *e;
	u64 ns;

	if (!interrupt_ended(&ns))
		return 0;
	if (ns < min_ns) {
		count(LEDGER_FILTERED);
		return 0;
	}
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
	emit_end_stack(ctx, e, sizeof(*e));
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int on_exit(u64 *ctx)
{
	struct irqaction *action = (void *)ctx[1];

	return end(ctx, action->name, (u32)ctx[2] == IRQ_NONE);
}

PROGRAM(on_entry, "tp_btf/irq_handler_entry", start(ctx))

#define VECTOR(vector)                           \
	SEC("tp_btf/" #vector "_exit")           \
	int on_##vector##_exit(u64 *ctx)         \
	{                                        \
		return end(ctx, #vector, false); \
	}                                        \
	SEC("tp_btf/" #vector "_entry")          \
	int on_##vector##_entry(u64 *ctx)        \
	{                                        \
		return start(ctx);               \
	}

IRQ_VECTORS(VECTOR)
