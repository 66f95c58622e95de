/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of interrupts: NAMES(each) expands to each(name) for all of them. */
#ifndef CORETAP_IRQ_H
#define CORETAP_IRQ_H

/* Softirqs by number (enum in include/linux/interrupt.h), named as in /proc/softirqs. */
#define SOFTIRQS(each)                                                                          \
	each(hi) each(timer) each(net_tx) each(net_rx) each(block) each(irq_poll) each(tasklet) \
		each(sched) each(hrtimer) each(rcu)

#define IRQ_NONE 0 /* result of a handler: the interrupt was not from its device */

/* A power of two that is not less than the number of softirqs. */
#define SOFTIRQ_SLOTS 16

/*
 * Interrupts of the processor itself, by the names of their tracepoints
 * (x86). They have no handlers that irq_handler_entry would report.
 */
#define IRQ_VECTORS(each)                                                                 \
	each(local_timer) each(reschedule) each(call_function) each(call_function_single) \
		each(irq_work) each(x86_platform_ipi) each(thermal_apic) each(error_apic) \
			each(spurious_apic)

#endif
