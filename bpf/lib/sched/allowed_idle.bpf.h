/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long at least one CPU that a task may use was idle (--affinity). For each set of
 * CPUs that waiting tasks may use there is the total time with one of them idle: the share
 * of a wait is the difference of two readings. A CPU that becomes idle or busy updates all
 * sets that contain it, each under its lock. Sets are few: mostly that of all CPUs, and
 * those of containers; the time of a single CPU has one writer and no lock. A tool has hooks
 * for idle_since_start and for its own program at sched_switch, which calls cpu_switches().
 *
 * Contexts: sched_switch, with interrupts off.
 */
#ifndef CORETAP_ALLOWED_IDLE_BPF_H
#define CORETAP_ALLOWED_IDLE_BPF_H

#include "lib/sched/cpu_sets.bpf.h"

OPT(bool, affinity);

/*
 * Idle time in one word, which is read without a lock: while a CPU is idle, this bit, and the time
 * when idle time would have begun without gaps; otherwise the idle time so far.
 */
#define IDLE_NOW (1ULL << 63)

struct idle_time {
	struct bpf_spin_lock lock;
	u32 used;
	u64 time; /* with one of its CPUs idle */
	struct cpu_set set;
};

MAP(ARRAY, idle_sets, CPU_SETS, u32, struct idle_time);

struct cpu_idle {
	u64 time; /* written by this CPU only */
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

inline_ u64 idle_until(u64 time, u64 now)
{
	return time & IDLE_NOW ? since(time & ~IDLE_NOW, now) : time;
}

/* With one writer at a time. */
inline_ void idle_is(u64 *time, bool idle, u64 now)
{
	u64 before = *time, total = idle_until(before, now);

	if (before >> 63 != idle)
		*(volatile u64 *)time = idle ? since(total, now) | IDLE_NOW : total;
}

/*
 * idle_cpus is already up to date: the last updater stores the correct state,
 * in any order of CPUs. A separate function, as the verifier needs it.
 */
__noinline int update_set(u32 number, u64 now)
{
	struct idle_time *t = bpf_map_lookup_elem(&idle_sets, &number);

	/* Up to 6.7 the verifier checks this function even if it is not called. */
	if (!affinity || !t || !*(volatile u32 *)&t->used)
		return 0;
	bpf_spin_lock(&t->lock);
	idle_is(&t->time, an_idle_one(&t->set), now);
	bpf_spin_unlock(&t->lock);
	return 1;
}

inline_ void cpu_becomes(bool idle, u64 now, bool with_sets)
{
	u32 cpu = bpf_get_smp_processor_id(), word = cpu / 64;
	u64 bit = 1ULL << (cpu & 63);
	struct cpu_idle *own = cpu_slot(&cpu_idles);

	if (!own || own->time >> 63 == idle || word >= CPU_WORDS)
		return;
	idle_is(&own->time, idle, now);
	__sync_fetch_and_add(&idle_cpus[word], idle ? bit : -bit);
	if (!with_sets)
		return;
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

/* Run on each CPU before any wait is measured: sets are added later. */
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
		idle_is(&t->time, an_idle_one(&t->set), now);
	}
	bpf_spin_unlock(&t->lock);
	/* A CPU that has changed meanwhile may not have seen that this set is in use. */
	if (taken)
		update_set(number, now);
	return taken;
}

/* Time until now with one of these CPUs idle; only differences are meaningful. */
inline_ u64 idle_so_far(u32 allowed, u64 now)
{
	u32 number = allowed & (CPU_WORDS * 64 - 1);
	struct cpu_idle *cpu;
	struct idle_time *t;

	if (allowed & SINGLE_CPU) {
		cpu = bpf_map_lookup_elem(&cpu_idles, &number);
		return cpu ? idle_until(*(volatile u64 *)&cpu->time, now) : 0;
	}
	t = bpf_map_lookup_elem(&idle_sets, &number);
	return t ? idle_until(*(volatile u64 *)&t->time, now) : 0;
}

#endif
