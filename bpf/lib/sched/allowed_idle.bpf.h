/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long at least one CPU that a task may use was idle (--affinity). For each set of
 * CPUs that waiting tasks may use there is the total time with one of them idle: the share
 * of a wait is the difference of two readings. A CPU that becomes idle or busy updates all
 * sets that contain it, each under its lock. Sets are few: mostly that of all CPUs, and
 * those of containers; sets of a single CPU are kept separately. A tool has hooks for
 * idle_since_start and for its own program at sched_switch, which calls cpu_switches().
 *
 * Contexts: sched_switch, with interrupts off.
 */
#ifndef CORETAP_ALLOWED_IDLE_BPF_H
#define CORETAP_ALLOWED_IDLE_BPF_H

#include "lib/sched/cpu_sets.bpf.h"

OPT(bool, affinity);

struct idle_time {
	struct bpf_spin_lock lock;
	u32 used;
	u64 idle;  /* one of its CPUs is idle */
	u64 since; /* start of that idle time */
	u64 total; /* idle time before that */
	struct cpu_set set;
};

MAP(ARRAY, idle_sets, CPU_SETS, u32, struct idle_time);

/* Sets of a single CPU, by CPU number. */
MAP(ARRAY, idle_singles, CPU_WORDS * 64, u32, struct idle_time);

struct cpu_idle {
	u64 idle;
};

CPU_SLOTS(cpu_idles, struct cpu_idle);

/* A bit for each CPU, set and cleared by addition: 5.10 has no other atomic operation. */
u64 idle_cpus[CPU_WORDS];

inline_ u64 idle_word(u32 i)
{
	return *(volatile u64 *)&idle_cpus[i & (CPU_WORDS - 1)];
}

inline_ bool an_idle_one(struct cpu_set *set)
{
	u64 any = 0;

	for (u32 i = 0; i < CPU_WORDS; i++)
		if (i < cpu_words)
			any |= set->words[i] & idle_word(i);
	return any;
}

/* Call with the lock held. */
inline_ void idle_is(struct idle_time *t, bool idle, u64 now)
{
	if (t->idle == idle)
		return;
	if (t->idle)
		t->total += since(t->since, now);
	t->idle = idle;
	t->since = now;
}

/*
 * idle_cpus is already up to date: the last updater stores the correct state,
 * in any order of CPUs. A separate function, as the verifier needs it.
 */
__noinline int update_set(u32 number, u64 now)
{
	struct idle_time *t = bpf_map_lookup_elem(&idle_sets, &number);
	u32 used;

	/* Up to 6.7 the verifier checks this function even if it is not called. */
	if (!affinity || !t)
		return 0;
	bpf_spin_lock(&t->lock);
	used = t->used;
	if (used)
		idle_is(t, an_idle_one(&t->set), now);
	bpf_spin_unlock(&t->lock);
	return used;
}

inline_ void cpu_becomes(bool idle, u64 now, bool with_sets)
{
	u32 cpu = bpf_get_smp_processor_id(), word = cpu / 64;
	u64 bit = 1ULL << (cpu & 63);
	struct cpu_idle *own = cpu_slot(&cpu_idles);
	struct idle_time *single;

	if (!own || own->idle == idle || word >= CPU_WORDS)
		return;
	own->idle = idle;
	__sync_fetch_and_add(&idle_cpus[word], idle ? bit : -bit);
	if (!with_sets)
		return;
	single = bpf_map_lookup_elem(&idle_singles, &cpu);
	if (single) {
		bpf_spin_lock(&single->lock);
		idle_is(single, idle, now);
		bpf_spin_unlock(&single->lock);
	}
	for (u32 i = 0; i < CPU_SETS; i++)
		if (!update_set(i, now))
			break;
}

/* The idle task also runs on a CPU that goes offline. */
inline_ void cpu_switches(struct task_struct *next, u64 now)
{
	if (affinity)
		cpu_becomes(!next->pid && BPF_CORE_READ(next, se.cfs_rq, rq, online), now, true);
}

/* Run on each CPU before any wait is measured: sets and single CPUs are added later. */
SEC("run/each_cpu")
int idle_since_start(void *ctx)
{
	cpu_becomes(!BPF_CORE_READ(current_task(), pid), 0, false);
	return 0;
}

__noinline int claim_set(u32 number)
{
	u64 now = bpf_ktime_get_ns();
	struct idle_time *t = bpf_map_lookup_elem(&idle_sets, &number);
	struct cpu_set *set = cpu_slot(&set_scratch);
	int taken = 0;

	if (!affinity || !t || !set)
		return 0;
	bpf_spin_lock(&t->lock);
	if (!t->used) {
		t->used = taken = 1;
		t->set = *set;
		t->idle = an_idle_one(&t->set);
		t->since = now;
	}
	bpf_spin_unlock(&t->lock);
	return taken;
}

/* Time until now with one of these CPUs idle; only differences are meaningful. */
inline_ u64 idle_so_far(u32 allowed, u64 now)
{
	u32 number = allowed & (CPU_WORDS * 64 - 1);
	struct idle_time *t;
	u64 total;

	if (allowed & SINGLE_CPU)
		t = bpf_map_lookup_elem(&idle_singles, &number);
	else
		t = bpf_map_lookup_elem(&idle_sets, &number);
	if (!t)
		return 0;
	bpf_spin_lock(&t->lock);
	if (allowed & SINGLE_CPU) /* its first idle time may have started before tracing */
		idle_is(t, idle_word(number / 64) >> (number & 63) & 1, now);
	total = t->total + (t->idle ? since(t->since, now) : 0);
	bpf_spin_unlock(&t->lock);
	return total;
}

#endif
