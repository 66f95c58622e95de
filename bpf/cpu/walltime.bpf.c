// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * walltime: every nanosecond of each thread is in one state.
 *
 * A thread has one account, and each of its transitions adds the time since the last one to one
 * state. Transitions of a thread happen under the lock of its run queue, so there is one writer.
 */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/changes.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/sched/allowed_idle.bpf.h"
#include "lib/sched/each_irq_time.bpf.h"
#include "lib/sched/runqueue.bpf.h"
#include "lib/sched/throttle.bpf.h"
#include "lib/sched/wait_facts.bpf.h"
#include "lib/stack/cpu_walk.bpf.h"
#include "lib/stack/same_walk.bpf.h"
#include "lib/stack/stack.bpf.h"
#include "cpu/lock_flags.h"
#include "cpu/walltime.h"

OPT(bool, by_thread);      /* rows belong to threads, not to processes */
OPT(bool, filters_by_ids); /* and by nothing else: a thread that is unwanted stays so */
OPT(__u64, min_wait_ns);   /* shorter waits have no stack */
OPT(bool, latency);        /* histograms of waits */
OPT(bool, graph);          /* stacks of waits for a CPU, and of samples, too */

/* Set by the loader at the end: what happens later is in no account. */
volatile u64 account_until = 0;

enum account_at {
	AT_NEW, /* nothing is known of the thread */
	AT_UNWANTED,
	AT_BEGIN, /* has an account; its state since then is known at its first transition */
	AT_CPU,
	AT_QUEUE,
	AT_WAIT,
	AT_END,
};

#define QUEUE_STATES 3 /* from WALL_BUSY on */

struct account {
	u64 changes; /* changes.bpf.h */
	u32 at;      /* enum account_at */
	u32 left;    /* flags of the wait, known when the thread leaves the CPU */
	u64 waited; /* the wait that has ended, until the thread is back; its reason is read then */
	u64 irq, stolen; /* irq_time and stolen time of the CPU when it got it */
	u64 user;        /* key of the user stack with which it left the CPU; 0: none */
	u64 queue;       /* address of its cfs_rq then; 0: not known */
	u64 throttled, idle;
	struct known_set set;
	u32 allowed;
	u32 lock; /* waits for a lock of the kernel, unless it is on the CPU */
	u32 has_waited;
	u32 pad;
	u64 ksoftirqd;
	u64 parts[QUEUE_STATES]; /* of its last wait for a CPU */
	struct walltime_account sum;
};

TASK_SLOT(struct account);

MAP(HASH, wait_rows, 1, struct walltime_row, struct wall_sum);

MAP(HASH, wait_hists, 1, struct walltime_kind, struct hist);

static const struct wall_sum no_time;
static const struct hist no_waits;

/* The time since the last transition. */
inline_ u64 pass(struct account *a, u64 now)
{
	u64 ns = since(a->sum.until_ns, now);

	a->sum.until_ns += ns;
	return ns;
}

inline_ void add_sum(struct wall_sum *s, u64 ns)
{
	s->ns += ns;
	s->count++;
	if (ns > s->longest_ns)
		s->longest_ns = ns;
}

inline_ void add_state(struct walltime_account *sum, enum wall_state state, u64 ns)
{
	if (ns)
		add_sum(&sum->states[state], ns);
}

inline_ u64 unique(u64 start_time, u32 id)
{
	return start_time * 0x9e3779b97f4a7c15ULL ^ id;
}

inline_ u64 begin_of(struct task_struct *t, u64 now)
{
	u64 begin = t->start_time > tracing_since ? t->start_time : tracing_since;

	return begin < now ? begin : now;
}

inline_ void name_account(struct walltime_account *sum, struct task_struct *t)
{
	identify_task(&sum->who, t);
	if (!by_thread)
		task_comm(t->group_leader, sum->who.comm);
}

inline_ void number_account(struct walltime_account *sum, struct task_struct *t)
{
	struct task_struct *leader = t->group_leader;

	sum->thread = unique(t->start_time, t->pid);
	sum->process = unique(leader->start_time, t->tgid);
	name_account(sum, t);
}

/* For a thread without an account: does it get one? */
static __noinline int begin_account(struct account *a, struct task_struct *t, u64 now)
{
	char *comm = t->comm;

	if (a->at == AT_UNWANTED && filters_by_ids)
		return 0;
	if (filter.on && !filter_matches(t)) {
		if (a->at == AT_NEW)
			count(LEDGER_FILTERED);
		a->at = AT_UNWANTED;
		return 0;
	}
	change_begins(&a->changes);
	a->sum.begin_ns = a->at == AT_NEW ? begin_of(t, now) : now;
	a->sum.until_ns = a->sum.begin_ns;
	a->ksoftirqd = t->flags & PF_KTHREAD && comm[0] == 'k' && comm[1] == 's' && comm[4] == 't';
	number_account(&a->sum, t);
	a->allowed = CPUS_UNKNOWN;
	a->at = AT_BEGIN;
	change_ends(&a->changes);
	return 1;
}

/* The account of a thread that has one, or gets one now. */
inline_ struct account *account_of(struct task_struct *t, u64 now)
{
	struct account *a = task_slot_make(t);

	if (a && a->at <= AT_UNWANTED && !begin_account(a, t, now))
		return NULL;
	return a && a->at != AT_END ? a : NULL;
}

inline_ u64 owner_of(struct walltime_account *sum)
{
	return by_thread ? sum->thread : sum->process;
}

/* `key->stack`: of the frames in the scratch; 0: none. */
static __noinline int add_row(struct walltime_row *key, struct wall_sum *more)
{
	struct wall_sum *row = bpf_map_lookup_elem(&wait_rows, key);
	u64 stack = key->stack;
	struct stack *frames;

	if (stack && (!row || stack_missed)) {
		frames = cpu_slot(&stack_scratch);
		if (frames)
			stack_store(frames, stack);
	}
	if (!row) {
		bpf_map_update_elem(&wait_rows, key, &no_time, BPF_NOEXIST);
		row = bpf_map_lookup_elem(&wait_rows, key);
	}
	if (!row)
		return 0;
	__sync_fetch_and_add(&row->ns, more->ns);
	__sync_fetch_and_add(&row->count, more->count);
	if (more->longest_ns > row->longest_ns) /* threads of a process may overwrite each other */
		row->longest_ns = more->longest_ns;
	return 1;
}

static __noinline int add_hist(u64 witness, u64 stack, u64 ns)
{
	struct walltime_kind key = { .witness = witness, .stack = stack };
	struct hist *h;

	if (!latency)
		return 0;
	h = map_row(&wait_hists, &key, &no_waits);
	if (h)
		hist_log2(h, ns, 1, 1000);
	return 0;
}

/* Another kind of waits takes the place of this one, which moves to the rows. */
static __noinline int replace_wait(struct account *a, struct wall_wait *w, u64 witness)
{
	struct walltime_row key = { .owner = owner_of(&a->sum), .witness = w->witness };

	if (w->witness && !add_row(&key, &w->sum)) {
		count_n(LEDGER_STACK_FAILED, w->sum.count);
		add_state(&a->sum, WALL_UNKNOWN, w->sum.ns);
	}
	w->witness = witness;
	w->sum = no_time;
	return 0;
}

/* The account holds a few kinds of waits itself, which costs less than a row. */
inline_ void add_wait(struct account *a, u64 witness, u64 ns)
{
	struct wall_wait *w = &a->sum.waits[(witness ^ witness >> 12) & (WALL_WAITS - 1)];

	if (w->witness != witness)
		replace_wait(a, w, witness);
	add_sum(&w->sum, ns);
}

/* The reason of the wait that has ended, from what the thread still has of it. */
static __noinline int reason_of_wait(struct account *a, struct task_struct *t)
{
	u32 flags = flags_of_wait(t);
	u64 witness = a->left | flags, ns = a->waited;
	struct walltime_row key = { .owner = owner_of(&a->sum), .user = a->user };
	struct wall_sum one = { .ns = ns, .count = 1, .longest_ns = ns };
	struct stack *frames;

	a->waited = 0;
	a->has_waited = 0;
	witness |= a->left & WALL_UNSEEN ? CALLS : call_of(t, flags);
	if (ns < min_wait_ns || a->left & WALL_UNSEEN) {
		add_wait(a, witness, ns);
		if (latency)
			add_hist(witness, 0, ns);
		return 0;
	}
	key.witness = witness;
	key.stack = stack_of_blocked(t, &frames);
	if (!key.stack || !add_row(&key, &one)) {
		count(LEDGER_STACK_FAILED);
		add_wait(a, witness, ns);
		key.stack = 0;
	}
	if (latency)
		add_hist(witness, key.stack, ns);
	return 0;
}

/* Taken by the hypervisor, where the kernel keeps it: only differences are meaningful. */
inline_ u64 stolen_so_far(struct task_struct *t)
{
	return bpf_core_field_exists(((struct rq *)0)->prev_steal_time_rq) ?
		       t->se.cfs_rq->rq->prev_steal_time_rq :
		       0;
}

inline_ void cpu_ends(struct account *a, struct task_struct *t, u64 now, struct irq_time *cpu)
{
	u64 ns = pass(a, now), irq = 0, stolen = 0;

	if (cpu && !a->ksoftirqd)
		irq = lesser(since(a->irq, cpu->ns), ns);
	if (a->stolen)
		stolen = lesser(since(a->stolen, stolen_so_far(t)), ns - irq);
	add_state(&a->sum, WALL_IRQ, irq);
	add_state(&a->sum, WALL_STOLEN, stolen);
	add_sum(&a->sum.states[WALL_CPU], ns - irq - stolen);
}

inline_ void queue_starts(struct account *a, struct task_struct *t, u64 now)
{
	struct cfs_rq *q = t->se.cfs_rq;

	a->at = AT_QUEUE;
	if (throttled_exactly()) {
		a->queue = (u64)q;
		a->throttled = throttled_so_far(q);
	}
	if (!affinity)
		return;
	a->allowed = allowed_again(&a->set, t);
	if (a->allowed != CPUS_UNKNOWN)
		a->idle = idle_so_far(a->allowed, now);
}

/*
 * When there is quota again, it may move to another CPU's queue. Before, no CPU is of use to it.
 * The account keeps what the queue has now: the next leaving may not be seen, and while the thread
 * runs there is quota.
 */
inline_ void split_queue(struct walltime_account *sum, struct account *a, struct task_struct *t,
			 u64 ns, u64 now)
{
	struct cfs_rq *q = t->se.cfs_rq;
	u64 limit = 0, idle = 0, throttled;

	if (throttled_exactly()) {
		throttled = throttled_so_far(q);
		if (a->queue)
			limit = a->queue == (u64)q ? throttled : throttled_before(a->queue, q);
		limit = lesser(since(a->throttled, limit), ns);
		a->queue = (u64)q;
		a->throttled = throttled;
	}
	if (affinity && a->allowed != CPUS_UNKNOWN && allowed_again(&a->set, t) == a->allowed)
		idle = since(limit, lesser(since(a->idle, idle_so_far(a->allowed, now)), ns));
	add_state(sum, WALL_LIMIT, limit);
	add_state(sum, WALL_IDLE, idle);
	add_state(sum, WALL_BUSY, ns - limit - idle);
	if (graph || latency) {
		a->parts[WALL_LIMIT - WALL_BUSY] = limit;
		a->parts[WALL_IDLE - WALL_BUSY] = idle;
		a->parts[0] = ns - limit - idle;
	}
}

static __noinline int queue_hists(struct account *a)
{
	for (u32 i = 0; i < QUEUE_STATES; i++)
		if (a->parts[i])
			add_hist(WALL_BUSY + i, 0, a->parts[i]);
	return 0;
}

/* A row for the stacks with which it waited for the CPU that it has now. */
static __noinline int queue_rows(struct account *a, struct task_struct *t)
{
	struct walltime_row key = { .owner = owner_of(&a->sum), .user = a->user };
	struct wall_sum one = { .count = 1 };
	struct stack *frames;

	if (a->parts[0] + a->parts[1] + a->parts[2] < min_wait_ns)
		return 0;
	key.stack = stack_of_blocked(t, &frames);
	for (u32 i = 0; i < QUEUE_STATES; i++) {
		key.witness = WALL_BUSY + i;
		one.ns = one.longest_ns = a->parts[i];
		if (one.ns && !add_row(&key, &one))
			count(LEDGER_STACK_FAILED);
	}
	return 0;
}

#define SAME_TIME 10000 /* ns: how far two clocks of one event may differ */

/* It leaves a CPU that it was not seen to get. */
inline_ void arrived_unseen(struct account *a, struct task_struct *t, u64 now, struct irq_time *cpu)
{
	u64 ns = arrived_ago(t), before;

	before = pass(a, ns < now ? now - ns : 0);
	if (a->at != AT_BEGIN || before > SAME_TIME)
		count(LEDGER_UNMATCHED);
	if (a->at == AT_QUEUE)
		split_queue(&a->sum, a, t, before, now - ns);
	else if (a->at == AT_WAIT)
		a->waited = before;
	else
		add_state(&a->sum, WALL_UNKNOWN, before);
	if (a->at == AT_WAIT || a->has_waited) {
		a->left |= WALL_UNSEEN;
		reason_of_wait(a, t);
	}
	if (a->at == AT_BEGIN && !before)
		return; /* it has had this CPU since tracing began */
	a->irq = cpu ? cpu->ns : 0;
	a->stolen = 0;
}

inline_ void leave(u64 *ctx, struct task_struct *t, u64 now, struct irq_time *cpu)
{
	u32 state = left_state(ctx);
	struct account *a = account_of(t, now);

	if (!a)
		return;
	if (stack_user && !(state & TASK_DEAD))
		a->user = often_same_stack_of_user(ctx, a->user);
	change_begins(&a->changes);
	if (a->at != AT_CPU)
		arrived_unseen(a, t, now, cpu);
	cpu_ends(a, t, now, cpu);
	if (state & TASK_DEAD) {
		a->at = AT_END;
		a->sum.ended = 1;
		task_comm(by_thread ? t : t->group_leader, a->sum.who.comm);
	} else if (state) {
		a->at = AT_WAIT;
		a->left = flags_of_state(t, state) | (a->lock ? WALL_LOCK : 0);
	} else {
		queue_starts(a, t, now);
	}
	change_ends(&a->changes);
	if (a->at == AT_END)
		emit_copy(&a->sum, sizeof(a->sum));
}

inline_ void arrive(struct task_struct *t, u64 now, struct irq_time *cpu)
{
	struct account *a = account_of(t, now);
	u64 queued;

	if (!a)
		return;
	change_begins(&a->changes);
	if (a->at == AT_CPU || a->at == AT_WAIT) {
		/* Before 6.14 (9c2136be0878) it may also have had a signal, and stayed queued. */
		queued = pass(a, now - lesser(queued_ago(t), now));
		if (a->at == AT_CPU || queued > SAME_TIME)
			count(LEDGER_UNMATCHED);
		if (a->at == AT_CPU) {
			add_state(&a->sum, WALL_UNKNOWN, queued);
		} else {
			a->waited = queued;
			a->has_waited = 1;
		}
		a->allowed = CPUS_UNKNOWN;
	}
	split_queue(&a->sum, a, t, pass(a, now), now);
	if (graph)
		queue_rows(a, t);
	if (latency)
		queue_hists(a);
	if (a->has_waited)
		reason_of_wait(a, t);
	a->at = AT_CPU;
	a->irq = cpu ? cpu->ns : 0;
	a->stolen = stolen_so_far(t);
	change_ends(&a->changes);
}

TRACING(on_switch, "tp_btf/sched_switch")
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u64 now = bpf_ktime_get_ns();
	struct irq_time *cpu = irq_time_at_switch(now);

	cpu_switches(next, now);
	if (!tracing_since)
		return 0;
	if (account_until && now > account_until) {
		/* A thread that ends may be missing in the iteration over all threads. */
		if (prev->pid && left_state(ctx) & TASK_DEAD)
			leave(ctx, prev, account_until, cpu);
		return 0;
	}
	if (prev->pid)
		leave(ctx, prev, now, cpu);
	if (next->pid)
		arrive(next, now, cpu);
	return 0;
}

/* Of a thread that is woken at a time that counts; NULL: it has none. */
inline_ struct account *woken_account(struct task_struct *t, u64 now)
{
	if (!tracing_since || (account_until && now > account_until))
		return NULL;
	return account_of(t, now);
}

TRACING(on_wakeup, "tp_btf/sched_wakeup")
{
	struct task_struct *t = (void *)ctx[0];
	u64 now = bpf_ktime_get_ns();
	struct account *a = woken_account(t, now);

	/* One that is on the CPU had not slept yet. */
	if (!a || (a->at != AT_WAIT && (a->at != AT_BEGIN || t->on_cpu)))
		return 0;
	change_begins(&a->changes);
	a->waited = pass(a, now);
	a->has_waited = 1;
	queue_starts(a, t, now);
	change_ends(&a->changes);
	return 0;
}

TRACING(on_wakeup_new, "tp_btf/sched_wakeup_new")
{
	struct task_struct *t = (void *)ctx[0];
	u64 now = bpf_ktime_get_ns();
	struct account *a = woken_account(t, now);

	if (!a || a->at != AT_BEGIN)
		return 0;
	change_begins(&a->changes);
	a->sum.begin_ns = a->sum.until_ns = now;
	queue_starts(a, t, now);
	change_ends(&a->changes);
	return 0;
}

/* Spin locks do not sleep. A mutex may spin before it does. */
TRACING(on_contended, "tp_btf/contention_begin")
{
	u32 flags = ctx[1];
	struct account *a;

	if (lock_spins(flags) || !tracing_since)
		return 0;
	a = current_slot(false);
	if (a)
		a->lock = 1;
	return 0;
}

TRACING(on_contended_end, "tp_btf/contention_end")
{
	struct account *a = tracing_since ? current_slot(false) : NULL;

	if (a)
		a->lock = 0;
	return 0;
}

/* Its owner needs no account yet: a thread that has not left the CPU has none. */
static __noinline int add_sample(struct account *a, struct walltime_row *key)
{
	struct task_struct *t = current_task(), *owner;
	struct wall_sum one = { .count = 1 };

	if (a && a->at == AT_END)
		return 0;
	if ((!a || a->at <= AT_UNWANTED) && filter.on && !filter_matches(t))
		return 0;
	owner = by_thread ? t : BPF_CORE_READ(t, group_leader);
	key->owner = unique(BPF_CORE_READ(owner, start_time), BPF_CORE_READ(owner, pid));
	if (!add_row(key, &one))
		count(LEDGER_STACK_FAILED);
	return 0;
}

/* In user code the kernel stack has no frames. */
SEC("perf_event/cpu-clock")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct walltime_row key = {};

	if (!graph || !tracing_since || account_until || !(u32)bpf_get_current_pid_tgid())
		return 0;
	key.stack = interrupted_stack_of_kernel(ctx);
	if (stack_user)
		key.user = stack_of_user(ctx, 0);
	key.witness = key.stack ? WALL_IN_KERNEL : WALL_IN_USER;
	return add_sample(current_slot(false), &key);
}

/* For the iterator only: other programs on this CPU may interrupt it. */
struct account copy;
struct stack copied_stack;

__noinline u64 copied_stack_key(u32 bytes)
{
	return key_of_kernel_frames(&copied_stack, bytes, 0);
}

inline_ u64 stack_of_open(struct task_struct *t)
{
	u32 size = stack_depth * 8;
	long bytes;
	u64 id;

	if (size > sizeof(copied_stack.ip))
		return 0;
	bytes = bpf_get_task_stack(t, copied_stack.ip, size, 0);
	if (bytes <= 0)
		return 0;
	id = copied_stack_key(bytes);
	stack_store(&copied_stack, id);
	return id;
}

#define COPIES 16

static __noinline int copy_account(struct account *a)
{
	u64 before;

	for (u32 i = 0; i < COPIES; i++) {
		before = changes_now(&a->changes);
		bpf_probe_read_kernel(&copy, sizeof(copy), a);
		if (!(before & 1) && changes_now(&a->changes) == before)
			return 1;
	}
	count(LEDGER_UNMATCHED);
	return 0;
}

/* Its state from `begin` to `now`, if it had no transition. */
inline_ u32 state_without_event(struct task_struct *t)
{
	return t->on_cpu ? AT_CPU : is_queued(t) ? AT_QUEUE : AT_WAIT;
}

/* Adds what is under way to the copy. */
static __noinline int add_open(struct task_struct *t, u64 now)
{
	u32 at = copy.at, cpu = task_cpu(t), state = task_state(t), flags;
	u64 ns, part = 0;

	if (at == AT_BEGIN) {
		at = state_without_event(t);
		copy.left = flags_of_state(t, state);
	}
	ns = pass(&copy, now);
	if (at == AT_CPU) {
		if (!copy.ksoftirqd)
			part = lesser(since(copy.irq, irq_now(cpu)), ns);
		add_state(&copy.sum, WALL_IRQ, part);
		add_state(&copy.sum, WALL_CPU, ns - part);
	} else if (at == AT_QUEUE) {
		split_queue(&copy.sum, &copy, t, ns, now);
	} else {
		copy.waited = ns;
		copy.has_waited = 1;
	}
	if (!copy.has_waited)
		return 0;
	copy.sum.open_ns = copy.waited;
	flags = flags_of_wait(t);
	copy.sum.open_witness = copy.left | flags | call_of(t, flags);
	if (copy.waited < min_wait_ns)
		return 0;
	copy.sum.open_stack = stack_of_open(t);
	copy.sum.open_user = copy.user;
	return 0;
}

SEC("iter/task")
int on_account(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	u64 until = account_until, now;
	struct account *a;

	if (!t || !t->pid || !tracing_since)
		return 0;
	a = task_slot(t);
	if (a && a->at > AT_UNWANTED) {
		if (a->at == AT_END || !copy_account(a))
			return 0;
	} else {
		if (task_state(t) & (TASK_DEAD | TASK_NEW) || (a && a->at && filters_by_ids))
			return 0;
		if (filter.on && !filter_matches(t))
			return 0;
		/* A thread that an earlier iteration saw has had no transition since then. */
		__builtin_memset(&copy, 0, sizeof(copy));
		copy.at = AT_BEGIN;
		copy.allowed = CPUS_UNKNOWN;
		copy.sum.begin_ns = begin_of(t, until ? until : bpf_ktime_get_ns());
		copy.sum.until_ns = copy.sum.begin_ns;
		number_account(&copy.sum, t);
	}
	now = until ? until : bpf_ktime_get_ns();
	name_account(&copy.sum, t);
	add_open(t, now);
	copy.sum.head.time_ns = now;
	bpf_seq_write(ctx->meta->seq, &copy.sum, sizeof(copy.sum));
	return 0;
}
