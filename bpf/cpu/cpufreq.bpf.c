// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cpufreq: clock of the CPU that a task runs on, at each tick. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "cpu/cpufreq.h"

#define KHZ_PER_MHZ 1000

/* For each CPU in kHz: the last change, and the value read earlier by the loader. */
CPU_SLOTS(clocks, u64);
const volatile __u32 khz_at_start[CPUFREQ_CPUS] = {};

HISTOGRAM_BY(frequencies, struct cpufreq_key, hist_linear)

/* (state in kHz, CPU) */
TRACING(on_change, "raw_tp/cpu_frequency")
{
	u32 cpu = ctx[1];
	u64 *khz = bpf_map_lookup_elem(&clocks, &cpu);

	if (khz)
		*khz = (u32)ctx[0];
	return 0;
}

/* intel_pstate, for this CPU: the eighth argument is the mean clock since the last sample. */
TRACING(on_pstate, "raw_tp/pstate_sample")
{
	u64 *khz = cpu_slot(&clocks);

	if (khz)
		*khz = (u32)ctx[7];
	return 0;
}

SEC("perf_event/cpu-clock")
int on_tick(void *ctx)
{
	u64 *changed = cpu_slot(&clocks);
	struct cpufreq_key key = {};
	u32 cpu = bpf_get_smp_processor_id();
	u64 khz = changed ? *changed : 0;

	if (!BPF_CORE_READ(current_task(), pid) || !keep_current())
		return 0;
	if (!khz && cpu < CPUFREQ_CPUS)
		khz = khz_at_start[cpu];
	if (!khz) { /* the CPU came online later, and its clock has not changed since */
		return counted(LEDGER_UNMATCHED);
	}
	bpf_get_current_comm(key.comm, sizeof(key.comm));
	frequencies_add(&key, khz / KHZ_PER_MHZ);
	__builtin_memset(&key, 0, sizeof(key));
	key.syswide = 1;
	return frequencies_add(&key, khz / KHZ_PER_MHZ);
}
