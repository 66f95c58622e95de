/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Per-CPU data: the filter --cpu, and time spans that start and end on one CPU.
 *
 * Contexts: all; CPU_SPAN only where preemption is off. Counts FILTERED, UNMATCHED.
 */
#ifndef CORETAP_CPU_BPF_H
#define CORETAP_CPU_BPF_H

#include "lib/core/filter.bpf.h"
#include "lib/core/since.bpf.h"

OPT(__u32, filter_cpu);
OPT(bool, filter_cpu_on);

inline_ bool keep_cpu(u32 cpu)
{
	if (!filter_cpu_on || cpu == filter_cpu)
		return true;
	return filtered();
}

inline_ bool keep_this_cpu(void)
{
	return !filter_cpu_on || keep_cpu(bpf_get_smp_processor_id());
}

/* An event of the running task. */
inline_ bool keep_here(void)
{
	return keep_this_cpu() && keep_current();
}

/*
 * Spans that do not nest, such as those of interrupts:
 * start of the current one; 0: none, or filtered.
 */
#define CPU_SPAN(name)                                   \
	CPU_SLOTS(name##_starts, u64);                   \
	inline_ int name##_start(void)                   \
	{                                                \
		u64 *start = cpu_slot(&name##_starts);   \
                                                         \
		if (!start)                              \
			return 0;                        \
		if (end_missed(*start))                  \
			count(LEDGER_UNMATCHED);         \
		*start = bpf_ktime_get_ns();             \
		return 0;                                \
	}                                                \
	inline_ bool name##_ended(u64 *ns)               \
	{                                                \
		u64 *start = cpu_slot(&name##_starts);   \
                                                         \
		if (!start || !*start)                   \
			return false;                    \
		*ns = since(*start, bpf_ktime_get_ns()); \
		*start = 0;                              \
		return true;                             \
	}

#endif
