/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs at the start and the end of interrupt handlers, and of interrupts of the processor
 * itself, which have no handlers (x86); the tool defines irq_starts() and irq_ends().
 *
 * Contexts: interrupts.
 */
#ifndef CORETAP_EACH_IRQ_BPF_H
#define CORETAP_EACH_IRQ_BPF_H

#include "lib/core/program.bpf.h"
#include "lib/sched/irq.h"

/* ctx[0] is the number of the interrupt. */
inline_ int irq_starts(u64 *ctx);
/* `name`: its handler's, or the processor's interrupt. */
inline_ int irq_ends(u64 *ctx, const char *name, bool spurious);

TRACING(on_irq_exit, "tp_btf/irq_handler_exit")
{
	struct irqaction *action = (void *)ctx[1];

	return irq_ends(ctx, action->name, (u32)ctx[2] == IRQ_NONE);
}

PROGRAM(on_irq_entry, "tp_btf/irq_handler_entry", irq_starts(ctx))

#define VECTOR(vector)                                                                        \
	PROGRAM(on_##vector##_exit, "tp_btf/" #vector "_exit", irq_ends(ctx, #vector, false)) \
	PROGRAM(on_##vector##_entry, "tp_btf/" #vector "_entry", irq_starts(ctx))

IRQ_VECTORS(VECTOR)

#endif
