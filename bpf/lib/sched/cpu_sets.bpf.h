/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers for the sets of CPUs that tasks may use. Sets are few: mostly that of
 * all CPUs, and those of containers; sets of a single CPU are kept separately. A
 * tool keeps its data of each set by the set's number, and defines claim_set().
 *
 * Contexts: sched_switch and wake-ups, with interrupts off.
 */
#ifndef CORETAP_CPU_SETS_BPF_H
#define CORETAP_CPU_SETS_BPF_H

#include "lib/core/task.bpf.h"

OPT(__u32, cpu_words); /* of a set, 64 CPUs each; 0: the system has too many */

#define CPU_WORDS 16
#define CPU_SETS 64

struct cpu_set {
	u64 words[CPU_WORDS];
};

MAP(HASH, set_numbers, CPU_SETS, struct cpu_set, u32);

#define SINGLE_CPU 0x80000000 /* | the CPU's number */
#define CPUS_UNKNOWN 0xffffffff

/* Wake-ups and switches run with interrupts disabled: no other of them can interrupt one. */
CPU_SLOTS(set_scratch, struct cpu_set);

/* Claims this number for the set in the scratch; 0: already taken, or out of range. */
__noinline int claim_set(u32 number);

/*
 * The number for the set in the scratch, which has none yet. Not inline: the verifier then checks
 * the loop once, instead of once for each place that asks for a set.
 */
__noinline u32 add_set(void)
{
	struct cpu_set *set = cpu_slot(&set_scratch);

	for (u32 i = 0; set && i < CPU_SETS; i++) {
		u32 number = i, *known;

		if (!claim_set(i))
			continue;
		/* Another CPU may have been first: then its number is used, not this one. */
		bpf_map_update_elem(&set_numbers, set, &number, BPF_NOEXIST);
		known = bpf_map_lookup_elem(&set_numbers, set);
		return known ? *known : CPUS_UNKNOWN;
	}
	return CPUS_UNKNOWN;
}

/*
 * A task that left its CPU with migration disabled has a private set, with only that CPU. The
 * count is also above 0 while a program runs in the task, so the pointer decides. It is read by
 * a helper: each place that loads a pointer of a task costs the verifier 0.4 ms (6.18
 * looks for names of safe types in all of BTF). Before 5.11 (af449901b84c) only real-time kernels
 * have the count.
 */
inline_ bool bound_to_cpu(struct task_struct *t)
{
	if (t->nr_cpus_allowed == 1)
		return true;
	return bpf_core_field_exists(t->migration_disabled) && t->migration_disabled &&
	       (u64)BPF_CORE_READ(t, cpus_ptr) != (u64)&t->cpus_mask;
}

/* The CPUs that the task may use now. */
inline_ u32 allowed_cpus(struct task_struct *t)
{
	u32 size = cpu_words * 8, *number;
	struct cpu_set *set;

	if (!size || size > sizeof(*set))
		return CPUS_UNKNOWN;
	if (bound_to_cpu(t))
		return SINGLE_CPU | task_cpu(t);
	set = cpu_slot(&set_scratch); /* its other words are 0 */
	if (!set || bpf_probe_read_kernel(set->words, size, &t->cpus_mask))
		return CPUS_UNKNOWN;
	number = bpf_map_lookup_elem(&set_numbers, set);
	return number ? *number : add_set();
}

/* The last set of a task, in its slot. */
struct known_set {
	u64 mask; /* of its CPUs, up to 64; 0: not known */
	u64 number;
};

/* allowed_cpus() without a look-up if the set is the same as before. */
inline_ u32 allowed_again(struct known_set *known, struct task_struct *t)
{
	u64 mask;
	u32 number;

	if (cpu_words != 1 || bound_to_cpu(t))
		return allowed_cpus(t);
	mask = t->cpus_mask.bits[0];
	if (known->mask == mask)
		return known->number;
	number = allowed_cpus(t);
	known->number = number;
	known->mask = number == CPUS_UNKNOWN ? 0 : mask;
	return number;
}

#endif
