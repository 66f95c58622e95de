// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * neighbours: what cgroups lose to others while they wait for a CPU.
 *
 * A wait is divided when it ends: the differences of the clocks of its CPU (turns.bpf.h). A task
 * that moves to the queue of another CPU ends a part of its wait.
 */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/changes.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/sched/allowed_idle.bpf.h"
#include "lib/sched/throttle.bpf.h"
#include "cpu/turns.bpf.h"
#include "cpu/neighbours.h"

struct waiter {
	u64 changes; /* changes.bpf.h */
	u64 since;   /* of the wait; 0: does not wait */
	u64 part;    /* since it is in this queue */
	u32 cpu;     /* of the queue */
	u32 read;    /* the clocks were read at the start of the part */
	u64 clock;   /* which one ran then */
	u64 clocks[TURN_CLOCKS];
	u64 queue; /* address of its cfs_rq; 0: not known */
	u64 throttled;
	u32 no_quota; /* at the start of the part */
	u32 allowed;
	u64 idle;
	struct known_set set;
	u64 reclaim; /* since it frees memory; 0: it does not */
};

TASK_SLOT(struct waiter);

TABLE(lost, struct neighbour_key, struct neighbour_sum)
KEPT(lost, struct neighbour_key, struct neighbour_sum)

/* The same, for programs that a switch may interrupt. */
TABLE(reclaims, struct neighbour_key, struct neighbour_sum)

#define MAX_RT_PRIO 100

/* The last queues of a CPU that ran out of quota while a task of theirs had it. */
#define THROTTLES 8 /* a power of two */

struct throttles {
	u64 next;
	u64 queues[THROTTLES];
	u64 times[THROTTLES];
};

CPU_SLOTS(throttles, struct throttles);

struct clocks {
	u64 ns[TURN_CLOCKS];
};

CPU_SLOTS(clock_scratch, struct clocks); /* for migrations */

inline_ u64 owner_by(u32 pid, u32 flags, int prio, u64 cgroup)
{
	if (!pid)
		return 0;
	if (flags & PF_KTHREAD)
		return NEIGHBOUR(KERNEL);
	return prio < MAX_RT_PRIO ? cgroup | NEIGHBOUR_RT : cgroup;
}

inline_ u64 turn_owner(struct task_struct *t)
{
	return owner_by(t->pid, t->flags, t->prio, task_cgroup(t));
}

inline_ u64 victim_of(struct task_struct *t)
{
	return turn_owner(t) & ~NEIGHBOUR_RT;
}

/* `waits`: of which this is the first part. */
__noinline int add_lost(u64 victim, u64 to, u64 ns, u64 waits)
{
	struct neighbour_key key = { .victim = victim, .to = to };
	u64 number = (victim ^ (to << 24 | to >> 40)) * 0x9e3779b97f4a7c15ULL;
	struct neighbour_sum *sum;

	number = number >> 32 | number << 32; /* bijective for each `to` */
	sum = lost_kept(number, to);
	if (sum) { /* of this CPU, on which no other program adds meanwhile */
		sum->ns += ns;
		sum->count += waits;
		return 1;
	}
	sum = lost_keep(number, to, &key);
	if (!sum)
		return 0;
	__sync_fetch_and_add(&sum->ns, ns);
	__sync_fetch_and_add(&sum->count, waits);
	return 1;
}

/* Named in place of the idle task. */
inline_ u64 named(u64 owner, u64 idle)
{
	return owner ? owner : idle;
}

/* Adds what the turns from `from` to `to` have; returns the rest, which no kept turn covers. */
__noinline u64 add_turns(u64 victim, u32 number, u64 from, u64 to, u64 idle)
{
	struct cpu_turns *cpu = turns_of(number);
	u64 left = since(from, to), begin, until, ns;
	struct kept_turn *turn;

	if (!cpu || !left)
		return left;
	begin = cpu->since > from ? cpu->since : from;
	ns = cpu->since ? since(begin, to) : 0;
	if (ns)
		add_lost(victim, named(cpu->owner, idle), ns, 0);
	left -= ns;
	for (u32 i = 1; i <= TURNS_KEPT && left; i++) {
		turn = &cpu->turns[(cpu->next - i) & (TURNS_KEPT - 1)];
		begin = turn->begin > from ? turn->begin : from;
		until = turn->until < to ? turn->until : to;
		if (turn->until <= from)
			break;
		ns = lesser(since(begin, until), left);
		if (ns)
			add_lost(victim, named(turn->owner, idle), ns, 0);
		left -= ns;
	}
	return left;
}

inline_ u64 clock_owner(struct cpu_turns *cpu, u32 i)
{
	return i == CLOCK_IDLE    ? NEIGHBOUR(IDLE) :
	       i == CLOCK_IRQ     ? NEIGHBOUR(IRQ) :
	       i == CLOCK_UNKNOWN ? NEIGHBOUR(UNKNOWN) :
				    cpu->owners[i];
}

/* Adds the growth of the clocks since `w` was written, until now; returns the rest. */
static __noinline u64 add_clocks(u64 victim, struct waiter *w, u64 *clocks, u64 waits, u64 now)
{
	struct cpu_turns *cpu = turns_of(w->cpu);
	u64 left = since(w->part, now), ns;

	for (u32 i = 0; cpu && i < TURN_CLOCKS; i++) {
		if (i >= CLOCK_TASKS && cpu->last[i] < w->part && i != w->clock)
			continue;
		/* A clock with a new owner counts from 0. */
		ns = i >= CLOCK_TASKS && cpu->begun[i] > w->part ? 0 : w->clocks[i];
		ns = lesser(since(ns, clocks[i]), left);
		if (!ns)
			continue;
		add_lost(victim, clock_owner(cpu, i), ns, waits);
		waits = 0;
		left -= ns;
	}
	if (left || waits)
		add_lost(victim, NEIGHBOUR(UNKNOWN), left, waits);
	return 0;
}

/* Does the queue have no quota now? */
inline_ bool is_throttled(struct cfs_rq *q)
{
	struct cfs_rq___pelt *old = (void *)q;

	if (throttled_exactly())
		return q->throttled_clock_self != 0;
	return bpf_core_field_exists(old->throttle_count) && old->throttle_count;
}

inline_ void note_throttle(struct cfs_rq *q, u64 now)
{
	struct throttles *all = cpu_slot(&throttles);
	u32 i;

	if (!all)
		return;
	i = all->next++ & (THROTTLES - 1);
	all->queues[i] = (u64)q;
	all->times[i] = now;
}

/* When this queue was last seen to run out of quota; 0: not after `from`. */
__noinline u64 throttled_at(u32 cpu, u64 queue, u64 from)
{
	struct throttles *all = bpf_map_lookup_elem(&throttles, &cpu);
	u64 at = 0;

	for (u32 i = 0; all && i < THROTTLES; i++)
		if (all->queues[i] == queue && all->times[i] > from && all->times[i] > at)
			at = all->times[i];
	return at;
}

/*
 * A part of a wait without quota for a time: only the rest is lost to others. When it began is
 * known if there was no quota at the start, or a task of the same queue was seen to leave for it.
 */
static __noinline u64 add_around_limit(u64 victim, struct waiter *w, u64 limit, u64 now)
{
	u64 idle = throttled_exactly() ? NEIGHBOUR(IDLE) : NEIGHBOUR(LIMIT), at, left;

	if (w->no_quota)
		return add_turns(victim, w->cpu, w->part + limit, now, idle);
	at = throttled_at(w->cpu, w->queue, w->part);
	if (!at)
		return since(limit, since(w->part, now));
	left = add_turns(victim, w->cpu, w->part, at, idle);
	return left + add_turns(victim, w->cpu, at + limit, now, idle);
}

inline_ u64 limit_of_part(struct waiter *w, struct cfs_rq *q, u64 now)
{
	if (!w->queue)
		return 0;
	return lesser(since(w->throttled, w->queue == (u64)q ? throttled_so_far(q) :
							       throttled_before(w->queue, q)),
		      since(w->part, now));
}

static __noinline int add_part(u64 victim, struct waiter *w, u64 limit, u64 waits, u64 now)
{
	u64 left;

	if (limit)
		left = add_around_limit(victim, w, limit, now);
	else
		left = add_turns(victim, w->cpu, w->part, now, NEIGHBOUR(IDLE));
	if (limit)
		add_lost(victim, NEIGHBOUR(LIMIT), limit, waits);
	if (left || (waits && !limit))
		add_lost(victim, NEIGHBOUR(UNKNOWN), left, limit ? 0 : waits);
	return 0;
}

/* `clocks`: those of the queue's CPU now. `waits`: 1 at the end of a wait. */
inline_ void part_ends(u64 victim, struct waiter *w, u64 *clocks, u64 limit, u64 waits, u64 now)
{
	if (limit || !w->read)
		add_part(victim, w, limit, waits, now);
	else
		add_clocks(victim, w, clocks, waits, now);
}

inline_ void wait_starts(struct waiter *w, struct task_struct *t, u64 now)
{
	u32 number = task_cpu(t);
	struct cpu_turns *cpu = turns_of(number);
	struct cfs_rq *q = t->se.cfs_rq;

	change_begins(&w->changes);
	w->since = w->part = now;
	w->cpu = number;
	w->read = cpu != NULL;
	if (cpu) {
		read_clocks(cpu, number, w->clocks, now);
		w->clock = cpu->clock;
	}
	w->queue = (u64)q;
	w->throttled = throttled_so_far(q);
	w->no_quota = is_throttled(q);
	change_ends(&w->changes);
	if (!affinity)
		return;
	w->allowed = allowed_again(&w->set, t);
	if (w->allowed != CPUS_UNKNOWN)
		w->idle = idle_so_far(w->allowed, now);
}

/* Its move to this CPU's queue was not seen; the kernel knows when it was. */
static __noinline int moved_unseen(u64 victim, struct waiter *w, u64 queued, u64 now)
{
	u64 moved = since(queued, now), before = since(w->part, moved);

	if (before)
		add_lost(victim, NEIGHBOUR(UNKNOWN), before, 0);
	w->part += before;
	w->cpu = bpf_get_smp_processor_id();
	w->read = 0;
	w->queue = 0;
	return 0;
}

/* It got the CPU, which is this one. */
inline_ void wait_ends(struct waiter *w, struct cpu_turns *cpu, struct task_struct *t, u64 victim,
		       u64 now)
{
	u64 idle;

	if (w->cpu != bpf_get_smp_processor_id())
		moved_unseen(victim, w, queued_ago(t), now);
	part_ends(victim, w, cpu->ns, limit_of_part(w, t->se.cfs_rq, now), 1, now);
	if (affinity && w->allowed != CPUS_UNKNOWN && allowed_again(&w->set, t) == w->allowed) {
		idle = lesser(since(w->idle, idle_so_far(w->allowed, now)), since(w->since, now));
		if (idle)
			add_lost(victim, NEIGHBOUR(UNUSED), idle, 0);
	}
	w->since = 0;
}

/* The start of a wait was not seen, or came before tracing; the kernel knows it. */
static __noinline int add_unseen(struct task_struct *t, u32 cpu, u64 ns, u64 now)
{
	u64 victim = victim_of(t), begin = now - lesser(ns, since(tracing_since, now)), left;

	left = add_turns(victim, cpu, begin, now, NEIGHBOUR(IDLE));
	add_lost(victim, NEIGHBOUR(UNKNOWN), left, 1);
	return 0;
}

/* It was seen to wait, but not to get the CPU that it leaves now, which it had for `ran`. */
static __noinline int arrived_unseen(struct waiter *w, struct task_struct *t, u64 ran, u64 now)
{
	u64 victim = victim_of(t), until = since(ran, now), left;

	left = add_turns(victim, w->cpu, w->part, until, NEIGHBOUR(IDLE));
	add_lost(victim, NEIGHBOUR(UNKNOWN), left, 1);
	w->since = 0;
	return 0;
}

inline_ void leave(u64 *ctx, struct task_struct *t, struct turn *turn, u64 now)
{
	bool queued = !left_state(ctx);
	struct cfs_rq *q = t->se.cfs_rq;
	u64 victim, ns = lesser(turn->ns, since(tracing_since, now));
	struct waiter *w;

	if (queued && is_throttled(q))
		note_throttle(q, now);
	if (filter.on && !filter_matches(t))
		return;
	victim = turn->owner & ~NEIGHBOUR_RT;
	if (ns)
		add_lost(victim, NEIGHBOUR(RAN), ns, 0);
	if (turn->irq)
		add_lost(victim, NEIGHBOUR(RAN_IRQ), lesser(turn->irq, ns), 0);
	if (!queued && turn->seen)
		return;
	w = queued ? task_slot_make(t) : task_slot(t);
	if (!w)
		return;
	if (w->since)
		arrived_unseen(w, t, turn->ns, now);
	if (queued)
		wait_starts(w, t, now);
}

inline_ void arrive(struct task_struct *t, struct cpu_turns *cpu, u64 owner, u64 now)
{
	struct waiter *w = task_slot(t);
	u64 ns;

	if (w && w->since) {
		wait_ends(w, cpu, t, owner & ~NEIGHBOUR_RT, now);
		return;
	}
	ns = queued_ago(t);
	if (ns && keep_task(t))
		add_unseen(t, bpf_get_smp_processor_id(), ns, now);
}

TRACING(on_switch, "tp_btf/sched_switch")
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u64 now = bpf_ktime_get_ns(), owner = turn_owner(next), irq;
	struct irq_time *irqs = irq_time_at_switch(now);
	struct cpu_turns *cpu = cpu_slot(&cpu_turns);
	struct turn turn;

	cpu_switches(next, now);
	if (!cpu)
		return 0;
	irq = irqs ? irqs->ns : 0;
	turn = turn_ends(cpu, prev, irq, now, NEIGHBOUR(UNKNOWN));
	/* Readings of the clocks below are of this moment. */
	cpu->since = now;
	cpu->irq = irq;
	if (tracing_since) {
		if (turn.unknown_ns && !filter.on)
			count(LEDGER_UNMATCHED);
		if (turn.missed_owner && !filter.on)
			add_lost(turn.missed_owner & ~NEIGHBOUR_RT, NEIGHBOUR(RAN),
				 lesser(turn.missed_ns, since(tracing_since, now)), 0);
		if (prev->pid)
			leave(ctx, prev, &turn, now);
		if (next->pid)
			arrive(next, cpu, owner, now);
	}
	turn_starts(cpu, (u64)next, owner, irq, now);
	return 0;
}

/* One that is on the CPU had not slept yet. */
inline_ int wakes(struct task_struct *t)
{
	struct waiter *w;

	if (!tracing_since || t->on_cpu || !keep_task(t))
		return 0;
	w = task_slot_make(t);
	if (w && !w->since)
		wait_starts(w, t, bpf_ktime_get_ns());
	return 0;
}

PROGRAM(on_wakeup, "tp_btf/sched_wakeup", wakes((void *)ctx[0]))
PROGRAM(on_wakeup_new, "tp_btf/sched_wakeup_new", wakes((void *)ctx[0]))

/* The queue of the same cgroup on another CPU. */
inline_ u64 queue_on(struct task_struct *t, u32 cpu)
{
	struct cfs_rq **queues = BPF_CORE_READ(t, se.cfs_rq, tg, cfs_rq);
	struct cfs_rq *q = NULL;

	bpf_probe_read_kernel(&q, sizeof(q), queues + cpu);
	return (u64)q;
}

/* The lock of the queue that the task leaves is held, that of the other one may not be. */
TRACING(on_migrate, "tp_btf/sched_migrate_task")
{
	struct task_struct *t = (void *)ctx[0];
	struct waiter *w = task_slot(t);
	struct clocks *clocks = cpu_slot(&clock_scratch);
	struct cfs_rq *q = t->se.cfs_rq;
	u64 now = bpf_ktime_get_ns();
	struct cpu_turns *cpu;
	u32 to = ctx[1];

	if (!w || !w->since || w->cpu == to)
		return 0;
	cpu = turns_of(w->cpu);
	if (!cpu || !clocks)
		return 0;
	read_clocks(cpu, w->cpu, clocks->ns, now);
	part_ends(victim_of(t), w, clocks->ns, limit_of_part(w, q, now), 0, now);
	change_begins(&w->changes);
	w->part = now;
	w->cpu = to;
	w->read = 0;
	w->queue = throttled_exactly() && bpf_core_field_exists(q->tg) ? queue_on(t, to) : 0;
	w->throttled = w->queue ? throttled_before(w->queue, q) : 0;
	w->no_quota = 0;
	change_ends(&w->changes);
	return 0;
}

/* For the iterator only: other programs on this CPU may interrupt it. */
struct waiter copy;
struct clocks copied;
struct neighbour_open open;

/* The known parts of the wait under way; the rest counts when it ends. */
static __noinline int open_wait(struct task_struct *t, struct waiter *w, u64 now)
{
	u64 changes = changes_now(&w->changes), left, ns;
	struct cpu_turns *cpu;
	u32 number;

	bpf_probe_read_kernel(&copy, sizeof(copy), w);
	if (changes & 1 || changes_now(&w->changes) != changes || !copy.since ||
	    *(volatile u64 *)&w->since != copy.since)
		return 0;
	open.limit_ns = limit_of_part(&copy, t->se.cfs_rq, now);
	if (open.limit_ns || !copy.read)
		return 1;
	number = copy.cpu;
	cpu = turns_of(number);
	if (!cpu)
		return 1;
	read_clocks(cpu, number, copied.ns, now);
	left = since(copy.part, now);
	for (u32 i = 0; i < TURN_CLOCKS; i++) {
		ns = i >= CLOCK_TASKS && cpu->begun[i] > copy.part ? 0 : copy.clocks[i];
		ns = lesser(since(ns, copied.ns[i]), left);
		open.ns[i] = ns;
		open.owners[i] = clock_owner(cpu, i);
		left -= ns;
	}
	return 1;
}

static __noinline int open_turn(struct task_struct *t, u64 now)
{
	u32 number = task_cpu(t);
	struct cpu_turns *cpu = turns_of(number);
	u64 begin;

	if (!cpu || cpu->task != (u64)t || (filter.on && !filter_matches(t)))
		return 0;
	begin = cpu->since > tracing_since ? cpu->since : tracing_since;
	open.ran_ns = since(begin, now);
	open.irq_ns = lesser(since(cpu->irq, irq_now(number)), open.ran_ns);
	return 1;
}

SEC("iter/task")
int on_open(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct waiter *w;
	u64 now;

	if (!t || !t->pid || !tracing_since)
		return 0;
	__builtin_memset(&open, 0, sizeof(open));
	now = bpf_ktime_get_ns();
	w = task_slot(t);
	if (!(t->on_cpu ? open_turn(t, now) : w && w->since ? open_wait(t, w, now) : 0))
		return 0;
	open.victim = victim_of(t);
	bpf_seq_write(ctx->meta->seq, &open, sizeof(open));
	return 0;
}

inline_ int reclaim_begins(void)
{
	struct waiter *w = tracing_since ? wanted_slot() : NULL;

	if (w)
		w->reclaim = bpf_ktime_get_ns();
	return 0;
}

inline_ int reclaim_ends(u64 to)
{
	struct waiter *w = current_slot(false);
	struct neighbour_key key = { .to = to };
	struct neighbour_sum *sum;
	struct task_id who = {};

	if (!w || !w->reclaim)
		return 0;
	identify_current(&who);
	key.victim = who.cgroup;
	sum = reclaims_row(&key);
	if (sum) {
		__sync_fetch_and_add(&sum->ns, since(w->reclaim, bpf_ktime_get_ns()));
		__sync_fetch_and_add(&sum->count, 1);
	}
	w->reclaim = 0;
	return 0;
}

PAIR(direct, mm_vmscan_direct_reclaim, reclaim_begins(), reclaim_ends(NEIGHBOUR(RECLAIM_MACHINE)))
PAIR(memcg, mm_vmscan_memcg_reclaim, reclaim_begins(), reclaim_ends(NEIGHBOUR(RECLAIM_OWN)))

/* The turn that is under way on each CPU when tracing begins. */
SEC("run/each_cpu")
int turn_since_start(void *ctx)
{
	struct task_struct *t = current_task();
	struct cpu_turns *cpu = cpu_slot(&cpu_turns);

	if (cpu && !cpu->since)
		turn_starts(cpu, (u64)t,
			    owner_by(BPF_CORE_READ(t, pid), BPF_CORE_READ(t, flags),
				     BPF_CORE_READ(t, prio), cgroup_of(t)),
			    0, bpf_ktime_get_ns());
	return 0;
}
