// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cpuunclaimed: CPUs that are idle while tasks wait for one. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/sched/cpu_sets.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/sched/runqueue.bpf.h"
#include "lib/core/since.bpf.h"
#include "lib/core/program.bpf.h"
#include "cpu/cpuunclaimed.h"

#define CPUS (CPU_WORDS * 64)
#define PLACES (CPU_SETS + CPUS)

/* For a set of CPUs: waiting tasks with this allowed set, and the number of idle CPUs in it. */
struct place {
	u64 waiting, idle;
};

/* The current state, since the last change. */
struct balance {
	struct bpf_spin_lock lock;
	u32 used; /* number of sets in use */
	u64 started;
	u64 since;
	u64 waiting, idle;
	u64 claims; /* sum over all places of the smaller of their two numbers */
	u64 idle_words[CPU_WORDS];
	struct cpu_set sets[CPU_SETS];
	struct place places[PLACES]; /* of sets, then of single CPUs */
};

MAP(ARRAY, balances, 1, u32, struct balance);

struct waiter {
	u64 place; /* index + 1 of its place; 0: not waiting */
};

struct cpu_state {
	u64 idle;
	u64 rq;
};

OPT(__u32, own_tgid);

TASK_SLOT(struct waiter);
CPU_SLOTS(cpu_states, struct cpu_state);
SUMS(unclaimed, struct cpuunclaimed_sums)

inline_ struct balance *the_balance(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&balances, &zero);
}

/*
 * A bit for each idle CPU, set and cleared by addition, before the same change under the lock:
 * the initial state when tracing starts. The program run on each CPU then cannot take locks.
 */
u64 idle_cpus[CPU_WORDS];

/* Call this and the functions below with the lock held. */
inline_ void change(struct balance *b, u32 place, u64 waiting, u64 idle)
{
	struct place *p;

	barrier_var(place);
	if (place >= PLACES)
		return;
	p = &b->places[place];
	b->claims -= lesser(p->waiting, p->idle);
	p->waiting += waiting;
	p->idle += idle;
	b->claims += lesser(p->waiting, p->idle);
}

inline_ void set_idle(struct balance *b, u32 cpu, bool idle)
{
	u32 word = cpu / 64 & (CPU_WORDS - 1), bit = cpu & 63;
	u64 by = idle ? 1 : -1;

	if ((b->idle_words[word] >> bit & 1) == idle)
		return;
	b->idle += by;
	b->idle_words[word] ^= 1ULL << bit;
	change(b, CPU_SETS + cpu, 0, by);
	for (u32 i = 0; i < CPU_SETS && i < b->used; i++)
		change(b, i, 0, by * (b->sets[i].words[word] >> bit & 1));
}

/* Charges the time since the last change to the previous state. */
inline_ void account(struct balance *b, struct cpuunclaimed_sums *s, u64 now)
{
	u64 ns = since(b->since, now), both = lesser(b->idle, b->waiting);
	u64 claimed = lesser(b->claims, both);

	if (now > b->since)
		b->since = now;
	s->span_ns += ns;
	s->idle_ns += ns * b->idle;
	s->waiting_ns += ns * b->waiting;
	s->unclaimed_ns += ns * claimed;
	s->barred_ns += ns * (both - claimed);
	s->accounted++;
}

/* Before any wait is recorded. */
__noinline int start(u64 now)
{
	struct balance *b = the_balance();

	if (!b)
		return 0;
	bpf_spin_lock(&b->lock);
	for (u32 cpu = 0; !b->started && cpu < CPUS; cpu++) {
		u64 idle = idle_cpus[cpu / 64] >> (cpu & 63) & 1;

		b->idle += idle;
		b->idle_words[cpu / 64] |= idle << (cpu & 63);
		b->places[CPU_SETS + cpu].idle = idle;
	}
	if (!b->started)
		b->since = now;
	b->started = 1;
	bpf_spin_unlock(&b->lock);
	return 0;
}

inline_ bool started(void)
{
	struct balance *b = the_balance();

	return b && b->started;
}

enum becomes { BUSY, IDLE, AS_IT_WAS };

/*
 * Changes under one lock: a task starts to wait at a place, one stops waiting (0:
 * none), and this CPU's state. A separate function, which the verifier checks once.
 */
__noinline int update(u32 starts, u32 ends, u32 becomes, u64 now)
{
	struct cpuunclaimed_sums *s = unclaimed_slot();
	u32 cpu = bpf_get_smp_processor_id();
	struct balance *b = the_balance();

	if (!b || !s || cpu >= CPUS)
		return 0;
	bpf_spin_lock(&b->lock);
	account(b, s, now);
	if (ends) {
		b->waiting--;
		change(b, ends - 1, -1, 0);
	}
	if (starts) {
		b->waiting++;
		change(b, starts - 1, 1, 0);
	}
	if (becomes != AS_IT_WAS)
		set_idle(b, cpu, becomes == IDLE);
	bpf_spin_unlock(&b->lock);
	return 0;
}

__noinline int claim_set(u32 number)
{
	struct cpu_set *set = cpu_slot(&set_scratch);
	struct balance *b = the_balance();
	int taken = 0;

	if (!b || !set || number >= CPU_SETS)
		return 0;
	bpf_spin_lock(&b->lock);
	if (number == b->used) {
		b->used++;
		taken = 1;
		b->sets[number] = *set;
		for (u32 i = 0; i < CPU_WORDS; i++)
			b->places[number].idle +=
				__builtin_popcountll(set->words[i] & b->idle_words[i]);
	}
	bpf_spin_unlock(&b->lock);
	return taken;
}

/* Index + 1 of the place for these CPUs; 0, and counted, if they are not known. */
inline_ u32 place_of(u32 allowed)
{
	if (allowed == CPUS_UNKNOWN)
		return counted(LEDGER_UNTRACKED);
	return allowed & SINGLE_CPU ? CPU_SETS + (allowed & (CPUS - 1)) + 1 : allowed + 1;
}

/* The place of a wanted task; 0: it is already waiting. */
inline_ u32 starts_to_wait(struct task_struct *t)
{
	struct waiter *w = keep_task(t) ? task_slot_make(t) : NULL;

	if (!w || w->place)
		return 0;
	return w->place = place_of(allowed_cpus(t));
}

inline_ u32 ends_to_wait(struct task_struct *t)
{
	struct waiter *w = task_slot(t);
	u32 place = w ? w->place : 0;

	if (place)
		w->place = 0;
	return place;
}

inline_ u32 becomes(bool idle)
{
	struct cpu_state *own = cpu_slot(&cpu_states);
	u32 cpu = bpf_get_smp_processor_id();
	u64 bit = 1ULL << (cpu & 63);

	if (!own || own->idle == idle || cpu >= CPUS)
		return AS_IT_WAS;
	own->idle = idle;
	__sync_fetch_and_add(&idle_cpus[cpu / 64], idle ? bit : -bit);
	return idle ? IDLE : BUSY;
}

/* A wake-up may find a task still running, or still queued: it was about to sleep. */
inline_ int wakes(struct task_struct *t)
{
	u32 starts = t->on_cpu || !started() ? 0 : starts_to_wait(t);

	if (starts)
		update(starts, 0, AS_IT_WAS, bpf_ktime_get_ns());
	return 0;
}

PROGRAM(on_wakeup, "tp_btf/sched_wakeup", wakes((void *)ctx[0]))
PROGRAM(on_wakeup_new, "tp_btf/sched_wakeup_new", wakes((void *)ctx[0]))

inline_ void wait_ended(u32 place, u64 now)
{
	SUM_ADD(unclaimed, events, 1);
	update(0, place, AS_IT_WAS, now);
}

/* The idle task also runs on a CPU that goes offline. */
TRACING(on_switch, "tp_btf/sched_switch")
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u32 own = becomes(!next->pid && BPF_CORE_READ(next, se.cfs_rq, rq, online));
	u32 starts = 0, ends = 0;
	u64 now = bpf_ktime_get_ns();

	if (!tracing_since)
		return 0;
	if (!started())
		start(tracing_since);
	/* The kernel skipped the switch to it. */
	ends = prev->pid ? ends_to_wait(prev) : 0;
	if (ends)
		wait_ended(ends, now);
	if (prev->pid && is_queued(prev))
		starts = starts_to_wait(prev);
	ends = next->pid ? ends_to_wait(next) : 0;
	if (ends)
		SUM_ADD(unclaimed, events, 1);
	/* The loader runs next and reads the sums. */
	if (starts || ends || own != AS_IT_WAS || task_tgid(next) == own_tgid)
		update(starts, ends, own, now);
	return 0;
}

/* If the allowed CPUs of a waiting task change and exclude this one, the task is migrated. */
TRACING(on_migrate, "tp_btf/sched_migrate_task")
{
	struct task_struct *t = (void *)ctx[0];
	struct waiter *w = task_slot(t);
	u32 allowed, place;

	if (!w || !w->place)
		return 0;
	allowed = allowed_cpus(t);
	if (allowed & SINGLE_CPU && allowed != CPUS_UNKNOWN)
		allowed = SINGLE_CPU | (u32)ctx[1];
	place = place_of(allowed);
	if (place == w->place)
		return 0;
	update(place, w->place, AS_IT_WAS, bpf_ktime_get_ns());
	w->place = place;
	return 0;
}

SEC("run/each_cpu")
int idle_since_start(void *ctx)
{
	becomes(!BPF_CORE_READ(current_task(), pid));
	return 0;
}

/* Samples: one CPU reads the run queues of all. */
u64 last_sample;

SEC("run/each_cpu")
int on_start(void *ctx)
{
	struct cpu_state *own = cpu_slot(&cpu_states);

	if (own)
		own->rq = (u64)rq_of(current_task());
	return 0;
}

SEC("perf_event/cpu-clock")
int on_sample(void *ctx)
{
	u64 now = bpf_ktime_get_ns(), ns = last_sample ? since(last_sample, now) : 0;
	struct cpuunclaimed_sums *s = unclaimed_slot();
	u64 idle = 0, waiting = 0;

	last_sample = now;
	if (!s || !tracing_since)
		return 0;
	for (u32 cpu = 0; cpu < CPUS; cpu++) {
		u32 key = cpu;
		struct cpu_state *c = bpf_map_lookup_elem(&cpu_states, &key);
		struct rq *rq;
		u64 runs;

		if (!c)
			break;
		rq = (void *)c->rq;
		if (!BPF_CORE_READ(rq, online))
			continue;
		runs = BPF_CORE_READ(rq, curr, pid) != 0;
		idle += !runs;
		waiting += since(runs, runnable_on(rq));
	}
	s->events++;
	s->span_ns += ns;
	s->idle_ns += ns * idle;
	s->waiting_ns += ns * waiting;
	s->unclaimed_ns += ns * lesser(idle, waiting);
	return 0;
}
