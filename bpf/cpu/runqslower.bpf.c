// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* runqslower: tasks that waited long for a CPU, and the tasks that occupied it. */
#include "lib/core/emit.bpf.h"
#include "lib/sched/run_delay.bpf.h"
#include "cpu/runqslower.h"

RECORD(runqslower_event);

OPT(__u64, min_ns);

#define TURNS 32 /* a power of two */

/* A task's time on a CPU, until a switch. */
struct turn {
	u64 until, ns;
	u64 tid; /* in the loader's pid namespace; 0: idle */
	char comm[COMM_LEN];
};

/* The last turns of a CPU. */
struct turns {
	u64 next, since;
	u64 found; /* here, so that the verifier does not follow each of its values */
	struct turn at[TURNS];
};

CPU_SLOTS(turns, struct turns);

inline_ void at_switch(u64 *ctx, struct task_struct *prev, u64 now)
{
	struct turns *all = cpu_slot(&turns);
	struct turn *turn;

	if (!all)
		return;
	turn = &all->at[all->next++ & (TURNS - 1)];
	turn->until = now;
	turn->ns = all->since ? since(all->since, now) : 0;
	turn->tid = task_tid(prev);
	task_comm(prev, turn->comm);
	all->since = now;
}

/*
 * Time that this task ran on this CPU since `start`, within the recorded turns. Not
 * inline: the verifier then checks the loop once, instead of once for each turn.
 */
__noinline u64 ran_since(u64 tid, u64 start)
{
	struct turns *all = cpu_slot(&turns);
	u64 sum = 0;

	for (u32 i = 0; all && i < TURNS; i++) {
		struct turn *turn = &all->at[i];
		u64 after = since(start, turn->until);

		if (turn->tid == tid)
			sum += turn->ns < after ? turn->ns : after;
	}
	return sum;
}

/* The time of the task that ran longest on this CPU since `start`; its place is in `found`. */
__noinline u64 find_longest(u64 start)
{
	struct turns *all = cpu_slot(&turns);
	u64 longest = 0, ns;
	struct turn *turn;

	for (u32 i = 0; all && i < TURNS; i++) {
		turn = &all->at[i];
		if (!turn->tid || turn->until <= start)
			continue;
		ns = ran_since(turn->tid, start);
		if (ns <= longest)
			continue;
		longest = ns;
		all->found = i;
	}
	return longest;
}

inline_ void name_longest(struct runqslower_event *e, u64 start)
{
	u64 longest = find_longest(start);
	struct turns *all = cpu_slot(&turns);
	struct turn *turn;

	if (!all || !longest)
		return;
	turn = &all->at[all->found & (TURNS - 1)];
	e->longest_ns = longest;
	e->longest_tid = turn->tid;
	__builtin_memcpy(e->longest_comm, turn->comm, sizeof(e->longest_comm));
}

inline_ int add_wait(u64 *ctx, struct task_struct *t, struct waited *w)
{
	struct task_struct *prev = (void *)ctx[1];
	struct runqslower_event *e;

	if (w->ns < min_ns)
		return filtered();
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	e->latency_ns = w->ns;
	e->idle_ns = w->idle_known ? w->idle_ns : NOT_KNOWN;
	e->warm_ns = w->warm_ns;
	e->quota_ns = w->quota_ns;
	e->cpu = bpf_get_smp_processor_id();
	identify_task(&e->who, t);
	if (w->queued) {
		e->previous_known = true;
		e->previous_tid = task_tid(prev);
		task_comm(prev, e->previous_comm);
		name_longest(e, w->queued);
	}
	return emit_end(e);
}
