/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Owners of a CPU's time. Each CPU has a clock for each of the last owners of its time, which
 * only grows: a wait is divided by the difference of two readings, at any number of turns. It
 * also has its last turns, for waits of which one reading is missing.
 *
 * An owner is a number that the tool gives to a task: turn_owner(). Programs at sched_switch call
 * turn_ends() and turn_starts(). A CPU's clocks may be read by another CPU with the lock of the run
 * queue, as wake-ups and migrations have it.
 *
 * Contexts: sched_switch, wake-ups and migrations, with interrupts off.
 */
#ifndef CORETAP_TURNS_BPF_H
#define CORETAP_TURNS_BPF_H

#include "lib/core/since.bpf.h"
#include "lib/sched/each_irq_time.bpf.h"
#include "lib/sched/runqueue.bpf.h"

#define TURN_CLOCKS 16 /* a power of two */
#define TURNS_KEPT 64  /* the same */

/* Special owners have the first clocks; those of tasks follow. */
enum turn_clock {
	CLOCK_IDLE,
	CLOCK_IRQ,     /* interrupts: not in the clock of the task that they interrupt */
	CLOCK_UNKNOWN, /* switches that were not seen */
	CLOCK_TASKS,
};

/* 0: the idle task. Defined by the tool. */
inline_ u64 turn_owner(struct task_struct *t);

struct kept_turn {
	u64 begin, until;
	u64 owner;
};

struct cpu_turns {
	u64 since; /* of the turn under way; 0: not known */
	u64 task;  /* its task's address */
	u64 owner;
	u64 clock;    /* index of its clock */
	u64 other;    /* that of the turn before */
	u64 irq;      /* interrupts until then */
	u64 switches; /* the kernel's number of them */
	u64 next;     /* in `turns` */
	u64 ns[TURN_CLOCKS];
	u64 owners[TURN_CLOCKS];
	u64 begun[TURN_CLOCKS]; /* when the clock got its owner */
	u64 last[TURN_CLOCKS];  /* when its last turn began */
	struct kept_turn turns[TURNS_KEPT];
};

CPU_SLOTS(cpu_turns, struct cpu_turns);

inline_ struct cpu_turns *turns_of(u32 cpu)
{
	return bpf_map_lookup_elem(&cpu_turns, &cpu);
}

/*
 * The clock of this owner on this CPU, which may replace the one whose last turn is the longest
 * ago. A separate function, which the verifier checks once.
 */
__noinline u32 clock_for(u64 owner, u64 now)
{
	struct cpu_turns *cpu = cpu_slot(&cpu_turns);
	u32 oldest = CLOCK_TASKS;

	if (!cpu)
		return CLOCK_UNKNOWN;
	for (u32 i = CLOCK_TASKS; i < TURN_CLOCKS; i++) {
		if (cpu->owners[i] == owner)
			return i;
		if (cpu->last[i] < cpu->last[oldest & (TURN_CLOCKS - 1)])
			oldest = i;
	}
	oldest &= TURN_CLOCKS - 1;
	cpu->owners[oldest] = owner;
	cpu->begun[oldest] = now;
	cpu->ns[oldest] = 0;
	return oldest;
}

inline_ u32 clock_of_owner(struct cpu_turns *cpu, u64 owner, u64 now)
{
	u32 clock = cpu->other & (TURN_CLOCKS - 1);

	if (!owner)
		return CLOCK_IDLE;
	if (cpu->owners[clock] == owner)
		return clock;
	clock = cpu->clock & (TURN_CLOCKS - 1);
	if (cpu->owners[clock] == owner)
		return clock;
	return clock_for(owner, now) & (TURN_CLOCKS - 1);
}

inline_ void turn_starts(struct cpu_turns *cpu, u64 task, u64 owner, u64 irq, u64 now)
{
	u32 clock = clock_of_owner(cpu, owner, now);

	cpu->last[clock] = now;
	cpu->since = now;
	cpu->task = task;
	cpu->owner = owner;
	cpu->other = cpu->clock;
	cpu->clock = clock;
	cpu->irq = irq;
}

inline_ void keep_turn(struct cpu_turns *cpu, u64 owner, u64 begin, u64 until)
{
	struct kept_turn *last = &cpu->turns[(cpu->next - 1) & (TURNS_KEPT - 1)];

	if (last->owner == owner && last->until == begin) {
		last->until = until;
		return;
	}
	last = &cpu->turns[cpu->next++ & (TURNS_KEPT - 1)];
	last->begin = begin;
	last->until = until;
	last->owner = owner;
}

struct turn {
	u64 ns;    /* how long the task that leaves had the CPU; 0: it is not known */
	u64 irq;   /* the part of it in interrupts */
	u64 owner; /* when it got the CPU */
	bool seen; /* it was seen to get the CPU */
	/* The turn of another owner before, whose end was not seen; 0: none. */
	u64 missed_ns, missed_owner;
	u64 unknown_ns; /* the same, of an owner that is not known */
};

/*
 * The turn of the task that leaves the CPU. Some switches are not reported (seen
 * on 6.18): the task then came when the kernel says. If that was the only switch between, the task
 * whose turn was under way had the CPU until then, else its owner is not known.
 */
inline_ struct turn turn_ends(struct cpu_turns *cpu, struct task_struct *t, u64 irq, u64 now,
			      u64 unknown)
{
	struct turn turn = { .ns = since(cpu->since, now), .owner = cpu->owner };
	u64 before = 0, begin = cpu->since, who = unknown;
	u64 switches = t->se.cfs_rq->rq->nr_switches;
	u32 clock = cpu->clock & (TURN_CLOCKS - 1);

	if (!cpu->since)
		return (struct turn){ .owner = turn_owner(t) };
	if (cpu->task != (u64)t) {
		before = since(t->pid ? arrived_ago(t) : 0, turn.ns);
		turn.ns -= before;
		if (t->pid && switches - cpu->switches == 2) {
			who = cpu->owner;
			turn.missed_ns = before;
			turn.missed_owner = who;
		} else {
			clock = CLOCK_UNKNOWN;
			turn.unknown_ns = before;
		}
		cpu->ns[clock] += before;
		keep_turn(cpu, who, begin, begin + before);
		begin += before;
		cpu->owner = turn.owner = turn_owner(t);
		clock = clock_of_owner(cpu, turn.owner, begin);
	} else {
		turn.seen = true;
		turn.irq = lesser(since(cpu->irq, irq), turn.ns);
	}
	cpu->ns[clock] += turn.ns - turn.irq;
	cpu->ns[CLOCK_IRQ] += turn.irq;
	keep_turn(cpu, cpu->owner, begin, now);
	cpu->switches = switches;
	return turn;
}

/* A reading of all clocks. */
inline_ void read_clocks(struct cpu_turns *cpu, u32 number, u64 *clocks, u64 now)
{
	u64 ns = cpu->since ? since(cpu->since, now) : 0, irq;
	u32 clock = cpu->clock & (TURN_CLOCKS - 1);

	for (u32 i = 0; i < TURN_CLOCKS; i++)
		clocks[i] = cpu->ns[i];
	irq = lesser(since(cpu->irq, irq_now(number)), ns);
	clocks[CLOCK_IRQ] += irq;
	clocks[clock] += ns - irq;
}

#endif
