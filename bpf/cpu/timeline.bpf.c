// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* timeline: switches, wakeups and interrupts of all CPUs, as records for a Perfetto trace. */
#include "lib/block/block_io.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/exchange.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/mm/each_fault.bpf.h"
#include "lib/mm/fault_starts.bpf.h"
#include "lib/net/accepted.bpf.h"
#include "lib/net/retransmit.bpf.h"
#include "lib/net/sock_receives.bpf.h"
#include "lib/sched/each_irq.bpf.h"
#include "lib/sched/runqueue.bpf.h"
#include "lib/syscall/syscall.bpf.h"
#include "cpu/timeline.h"

#define IRQ_WAKE_THREAD 2
#define IRQ_LEVELS 4

OPT(bool, with_irq);
OPT(__u64, min_call_ns);
OPT_OR(__u64, min_fault_ns, 10000);
OPT(__u32, own_tgid);

struct task_struct___exits {
	int exit_state;
} __attribute__((preserve_access_index));

enum lost_kind { LOST_SCHEDULING, LOST_OTHER, LOST_KINDS };

/* Interrupts and programs at functions use it in the middle of others: they only count. */
struct timeline_cpu {
	u64 lost[LOST_KINDS]; /* records since the last one that fitted */
	u64 from;             /* the first of them; 0: none */
	u64 task;             /* that the last switch was to: its address, and its id then */
	u64 irq_start[IRQ_LEVELS];
	u64 softirq_start[SOFTIRQ_SLOTS];
	u32 tid;
	u32 irqs;         /* handlers under way, one inside another */
	u32 softirqs;     /* under way, a bit for each */
	u32 wakes_thread; /* the next task that is woken is the thread of an interrupt */
};

CPU_SLOTS(timeline_cpus, struct timeline_cpu);

/* Tasks that the loader's pid namespace does not see have other ids than the idle task. */
inline_ u32 shown(u32 id, struct task_struct *t)
{
	return id || !view_pidns || !t->pid ? id : TIMELINE_OUTSIDE + t->pid;
}

inline_ void describe(struct timeline_task *to, struct task_struct *t)
{
	to->tid = shown(task_tid(t), t);
	to->tgid = shown(task_tgid(t), t);
	task_comm(t, to->comm);
}

/*
 * The id with which the task got this CPU, so that each switch is from the task that the last one
 * was to: a thread that executes a program changes its id, and a task that ends loses it.
 */
inline_ u32 tid_here(struct timeline_cpu *c, struct task_struct *t)
{
	u32 tid;

	if (c->task == (u64)t)
		return c->tid;
	tid = BPF_CORE_READ(t, pid);
	if (!view_pidns || !tid)
		return tid;
	return thread_of(t) ?: TIMELINE_OUTSIDE + tid;
}

inline_ void head(struct timeline_head *at, enum timeline_kind kind, u64 now, u32 tid)
{
	at->head.time_ns = now;
	at->kind = kind;
	at->cpu = bpf_get_smp_processor_id();
	at->tid = tid;
}

inline_ void lose(struct timeline_cpu *c, u64 now, enum lost_kind kind)
{
	__sync_fetch_and_add(&c->lost[kind], 1);
	if (!c->from)
		c->from = now;
}

inline_ void describe_running(struct timeline_task *to, u32 tid)
{
	struct task_struct *t = current_task();

	to->tid = tid;
	to->tgid = process_of(t);
	if (tid && !to->tgid)
		to->tgid = TIMELINE_OUTSIDE + BPF_CORE_READ(t, tgid);
	bpf_core_read_str(to->comm, sizeof(to->comm), &t->comm);
}

/* A record of what did not fit, before the first one that fits again. False: still no room. */
inline_ bool tell_gap(struct timeline_cpu *c, u64 now)
{
	struct timeline_gap *gap = bpf_ringbuf_reserve(&events, sizeof(*gap), 0);

	if (!gap)
		return false;
	__builtin_memset(gap, 0, sizeof(*gap));
	gap->from = exchange(&c->from, 0);
	if (!gap->from) { /* an interrupt has sent it meanwhile */
		bpf_ringbuf_discard(gap, BPF_RB_NO_WAKEUP);
		return true;
	}
	head(&gap->at, TIMELINE_GAP, now, tid_here(c, current_task()));
	gap->prio = BPF_CORE_READ(current_task(), prio);
	describe_running(&gap->task, gap->at.tid);
	gap->scheduling = exchange(&c->lost[LOST_SCHEDULING], 0);
	gap->lost = gap->scheduling + exchange(&c->lost[LOST_OTHER], 0);
	bpf_ringbuf_submit(gap, BPF_RB_NO_WAKEUP);
	return true;
}

/* A zeroed record; NULL: there is no room, or tracing has ended. */
inline_ void *record_begin(struct timeline_cpu *c, u64 size, u64 now, enum lost_kind kind)
{
	void *record;

	if (tracing_stopped)
		return NULL;
	if (c->from && !tell_gap(c, now)) {
		count(LEDGER_LOST);
		record = NULL;
	} else {
		record = emit_begin(size);
	}
	if (!record)
		lose(c, now, kind);
	return record;
}

inline_ int task_event(struct timeline_cpu *c, enum timeline_kind kind, u64 now, u32 tid, u32 what,
		       struct task_struct *t)
{
	struct timeline_task_event *e = record_begin(c, sizeof(*e), now, LOST_SCHEDULING);

	if (!e)
		return 0;
	head(&e->at, kind, now, tid);
	e->what = what;
	e->prio = t->prio;
	describe(&e->task, t);
	return emit_end(e);
}

/*
 * Some switches are not reported (seen on 6.18). The kernel's accounting has the time since when
 * the task runs that leaves the CPU now, but not of the idle task.
 */
inline_ void tell_unreported(struct timeline_cpu *c, struct task_struct *t, u64 now)
{
	u64 arrived = 0, ran = 0;
	struct timeline_task_event *e;

	if (bpf_core_field_exists(t->sched_info.last_arrival))
		arrived = t->sched_info.last_arrival;
	if (t->pid && arrived)
		ran = since(arrived, BPF_CORE_READ(rq_of(t), clock));
	e = record_begin(c, sizeof(*e), now, LOST_SCHEDULING);
	if (!e)
		return;
	head(&e->at, TIMELINE_RUNNING, now - ran, c->tid);
	e->prio = t->prio;
	describe(&e->task, t);
	emit_end(e);
}

TRACING(on_switch, "tp_btf/sched_switch")
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct timeline_cpu *c = cpu_slot(&timeline_cpus);
	u32 state = left_state(ctx), left;
	u64 now = bpf_ktime_get_ns();

	if (!c)
		return 0;
	if (c->task && c->task != (u64)prev)
		tell_unreported(c, prev, now);
	left = tid_here(c, prev);
	c->task = (u64)next;
	c->tid = shown(task_tid(next), next);
	/* An interrupt does not switch: its end was not seen. */
	c->irqs = c->softirqs = c->wakes_thread = 0;
	state = ctx[0] ? TIMELINE_PREEMPTED :
			 state | ((struct task_struct___exits *)prev)->exit_state;
	return task_event(c, TIMELINE_SWITCH, now, left, state, next);
}

inline_ int wakes(struct task_struct *t)
{
	struct timeline_cpu *c = cpu_slot(&timeline_cpus);
	u32 what = task_cpu(t) & 0xffff;

	if (!c)
		return 0;
	if (c->irqs || c->wakes_thread)
		what |= TIMELINE_WAKER_HARDIRQ;
	if (c->softirqs)
		what |= TIMELINE_WAKER_SOFTIRQ;
	c->wakes_thread = 0;
	return task_event(c, TIMELINE_WAKING, bpf_ktime_get_ns(), tid_here(c, current_task()), what,
			  t);
}

PROGRAM(on_waking, "tp_btf/sched_waking", wakes((void *)ctx[0]))
PROGRAM(on_waking_new, "tp_btf/sched_wakeup_new", wakes((void *)ctx[0]))

TRACING(on_fork, "tp_btf/sched_process_fork")
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	struct timeline_cpu *c = cpu_slot(&timeline_cpus);

	return c ? task_event(c, TIMELINE_TASK, bpf_ktime_get_ns(), tid_here(c, current_task()),
			      task_tgid(parent), child) :
		   0;
}

/* When tracing begins, and when it ends: the task that this CPU runs. */
SEC("run/each_cpu")
int on_running(void *ctx)
{
	struct timeline_cpu *c = cpu_slot(&timeline_cpus);
	u64 now = bpf_ktime_get_ns();
	struct timeline_task_event *e;

	if (!c)
		return 0;
	e = record_begin(c, sizeof(*e), now, LOST_SCHEDULING);
	if (!e)
		return 0;
	head(&e->at, TIMELINE_RUNNING, now, tid_here(c, current_task()));
	e->prio = BPF_CORE_READ(current_task(), prio);
	describe_running(&e->task, e->at.tid);
	return emit_end(e);
}

/* All tasks when tracing begins. */
SEC("iter/task")
int on_task(struct bpf_iter__task *ctx)
{
	struct timeline_task_event e = { .at.kind = TIMELINE_TASK };
	struct task_struct *t = ctx->task;

	if (!t)
		return 0;
	e.what = task_tgid(t->real_parent);
	e.prio = t->prio;
	describe(&e.task, t);
	bpf_seq_write(ctx->meta->seq, &e, sizeof(e));
	return 0;
}

inline_ int interrupt(struct timeline_cpu *c, enum timeline_kind kind, u64 start, u32 number,
		      const char *name)
{
	struct timeline_interrupt *e;
	u64 now;

	if (!with_irq || !start)
		return 0;
	now = bpf_ktime_get_ns();
	e = record_begin(c, sizeof(*e), now, LOST_OTHER);
	if (!e)
		return 0;
	head(&e->at, kind, now, (u32)bpf_get_current_pid_tgid());
	e->start = start;
	e->number = number;
	if (name)
		bpf_probe_read_kernel_str(e->name, sizeof(e->name), name);
	return emit_end(e);
}

inline_ int irq_starts(u64 *ctx)
{
	struct timeline_cpu *c = cpu_slot(&timeline_cpus);
	u32 level;

	if (!c)
		return 0;
	level = c->irqs++;
	c->wakes_thread = 0;
	if (with_irq)
		c->irq_start[level & (IRQ_LEVELS - 1)] = bpf_ktime_get_ns();
	return 0;
}

inline_ int irq_ends(u64 *ctx, const char *name, bool spurious)
{
	struct timeline_cpu *c = cpu_slot(&timeline_cpus);
	u32 level;

	if (!c || !c->irqs)
		return 0;
	level = --c->irqs;
	return interrupt(c, TIMELINE_IRQ, c->irq_start[level & (IRQ_LEVELS - 1)], (u32)ctx[0],
			 name);
}

/* The kernel wakes the thread of an interrupt after its handler has returned. */
TRACING(on_irq_result, "tp_btf/irq_handler_exit")
{
	struct timeline_cpu *c = cpu_slot(&timeline_cpus);

	if (c && (u32)ctx[2] & IRQ_WAKE_THREAD)
		c->wakes_thread = 1;
	return 0;
}

TRACING(on_softirq_exit, "tp_btf/softirq_exit")
{
	struct timeline_cpu *c = cpu_slot(&timeline_cpus);
	u32 vector = (u32)ctx[0] & (SOFTIRQ_SLOTS - 1);

	if (!c || !(c->softirqs & 1U << vector))
		return 0;
	c->softirqs &= ~(1U << vector);
	return interrupt(c, TIMELINE_SOFTIRQ, c->softirq_start[vector], vector, NULL);
}

TRACING(on_softirq_entry, "tp_btf/softirq_entry")
{
	struct timeline_cpu *c = cpu_slot(&timeline_cpus);
	u32 vector = (u32)ctx[0] & (SOFTIRQ_SLOTS - 1);

	if (!c)
		return 0;
	c->softirqs |= 1U << vector;
	c->wakes_thread = 0;
	if (with_irq)
		c->softirq_start[vector] = bpf_ktime_get_ns();
	return 0;
}

/* A task's page fault and system call; the fault comes first for lib/mm/fault.bpf.h. */
struct timeline_slot {
	struct fault fault;
	u64 fault_start; /* 0: none */
	u64 call_start;  /* 0: none */
	u64 call;        /* its index */
};

TASK_SLOT(struct timeline_slot);

inline_ bool by_coretap(void)
{
	return own_tgid && current_tgid() == own_tgid;
}

/* The running task, for events in its own context. */
inline_ void begin_own(struct timeline_cpu *c, struct timeline_head *at, enum timeline_kind kind,
		       u64 now, struct timeline_task *task)
{
	head(at, kind, now, tid_here(c, current_task()));
	describe_running(task, at->tid);
}

TRACING(on_enter, "tp_btf/sys_enter")
{
	struct pt_regs *regs = (void *)ctx[0];
	struct timeline_slot *s;

	if (by_coretap() || !keep_current())
		return 0;
	s = current_slot(true);
	if (!s)
		return 0;
	s->call = call_index((s32)ctx[1], call_is_compat(regs));
	s->call_start = bpf_ktime_get_ns();
	return 0;
}

TRACING(on_exit, "tp_btf/sys_exit")
{
	struct timeline_slot *s = current_slot(false);
	struct timeline_cpu *c = cpu_slot(&timeline_cpus);
	u64 now = bpf_ktime_get_ns(), start;
	struct timeline_call *e;

	if (!c || !s || !s->call_start)
		return 0;
	start = s->call_start;
	s->call_start = 0;
	if (since(start, now) < min_call_ns)
		return filtered();
	e = record_begin(c, sizeof(*e), now, LOST_OTHER);
	if (!e)
		return 0;
	begin_own(c, &e->at, TIMELINE_CALL, now, &e->task);
	e->start = start;
	e->result = (s64)ctx[1];
	e->index = s->call;
	return emit_end(e);
}

/* Calls in progress when tracing ends. */
SEC("iter/task")
int on_unfinished(struct bpf_iter__task *ctx)
{
	struct timeline_call e = { .at.kind = TIMELINE_CALL, .unfinished = 1 };
	struct task_struct *t = ctx->task;
	struct timeline_slot *s;

	if (!t)
		return 0;
	s = task_slot(t);
	if (!s || !s->call_start)
		return 0;
	e.at.head.time_ns = bpf_ktime_get_ns();
	e.start = s->call_start;
	e.index = s->call;
	if (since(e.start, e.at.head.time_ns) < min_call_ns)
		return 0;
	describe(&e.task, t);
	bpf_seq_write(ctx->meta->seq, &e, sizeof(e));
	return 0;
}

inline_ struct fault *fault_slot(bool make)
{
	return (struct fault *)current_slot(make);
}

inline_ void fault_begins(struct fault *f)
{
	((struct timeline_slot *)f)->fault_start = bpf_ktime_get_ns();
}

inline_ bool needs_area(void)
{
	return false;
}

static __noinline int fault_served(struct bpf_perf_event_data *ctx, bool major, struct area *a)
{
	struct timeline_slot *s = current_slot(false);
	struct timeline_cpu *c = cpu_slot(&timeline_cpus);
	u64 now = bpf_ktime_get_ns(), start;
	struct timeline_fault *e;

	if (!c || !s || !s->fault_start)
		return 0;
	start = s->fault_start;
	s->fault_start = 0;
	if (by_coretap())
		return 0;
	if (since(start, now) < min_fault_ns)
		return filtered();
	e = record_begin(c, sizeof(*e), now, LOST_OTHER);
	if (!e)
		return 0;
	begin_own(c, &e->at, TIMELINE_FAULT, now, &e->task);
	e->start = start;
	e->address = ctx->addr;
	e->major = major;
	return emit_end(e);
}

inline_ bool io_has_end(void)
{
	return true;
}

inline_ void identify_owner(void *ctx, struct block_owner *owner, struct bio *bio)
{
	identify_submitter(&owner->who, bio);
}

PROGRAM(on_issue, "tp_btf/block_rq_issue", io_issue(issue_rq(ctx)))

TRACING(on_complete, "tp_btf/block_rq_complete")
{
	struct request *rq = (struct request *)ctx[0];
	struct block_io *s = io_completed(rq, ctx[2]);
	struct timeline_cpu *c = cpu_slot(&timeline_cpus);
	u64 now = bpf_ktime_get_ns();
	struct timeline_request *e;

	if (!s || !c)
		return 0;
	e = record_begin(c, sizeof(*e), now, LOST_OTHER);
	if (e) {
		head(&e->at, TIMELINE_REQUEST, now, tid_here(c, current_task()));
		e->created = rq->start_time_ns;
		e->issued = s->issued;
		e->sector = s->sector;
		e->bytes = s->bytes;
		e->disk = rq_disk(rq);
		e->flags = rq->cmd_flags;
		e->status = (s32)ctx[1];
		if (s->owner.who.known) {
			e->submitter.tid = s->owner.who.tid;
			e->submitter.tgid = s->owner.who.pid;
			__builtin_memcpy(e->submitter.comm, s->owner.who.comm, COMM_LEN);
		}
		emit_end(e);
	}
	io_ended(rq, s);
	return 0;
}

/* With a filter: connections that wanted tasks opened, accepted or used, by their sockets. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u64);
} wanted_sockets SEC(".maps");

inline_ bool socket_wanted(u64 socket)
{
	return !filter.on || bpf_map_lookup_elem(&wanted_sockets, &socket);
}

/* The running task uses it. */
inline_ bool task_uses(u64 socket)
{
	if (by_coretap() || !keep_current())
		return false;
	if (filter.on && !bpf_map_lookup_elem(&wanted_sockets, &socket))
		map_put(&wanted_sockets, &socket, &socket);
	return true;
}

inline_ struct timeline_net *net_begin(enum timeline_net_event what, u64 socket, bool in_task)
{
	struct timeline_cpu *c = cpu_slot(&timeline_cpus);
	u64 now = bpf_ktime_get_ns();
	struct timeline_net *e;

	if (!c)
		return NULL;
	e = record_begin(c, sizeof(*e), now, LOST_OTHER);
	if (!e)
		return NULL;
	head(&e->at, TIMELINE_NET, now, tid_here(c, current_task()));
	if (in_task)
		describe_running(&e->task, e->at.tid);
	e->what = what;
	e->socket = socket;
	return e;
}

TRACING(on_state, "tp_btf/inet_sock_set_state")
{
	struct sock *sk = (struct sock *)ctx[0];
	u32 oldstate = (u32)ctx[1], newstate = (u32)ctx[2];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk); /* not SCTP or MPTCP */
	struct timeline_net *e;
	u64 socket = (u64)sk;
	bool in_task;

	if (!tp || oldstate == newstate)
		return 0;
	in_task = users_transition(tp, newstate);
	if (in_task && newstate == TCP_SYN_SENT && !task_uses(socket))
		return 0;
	/* The task that accepts a connection is known later. */
	if (!socket_wanted(socket) && oldstate != TCP_SYN_RECV)
		return 0;
	e = net_begin(TIMELINE_STATE, socket, in_task);
	if (e) {
		flow_of(tp, &e->flow);
		e->oldstate = oldstate;
		e->newstate = newstate;
		emit_end(e);
	}
	if (newstate == TCP_CLOSE && filter.on)
		bpf_map_delete_elem(&wanted_sockets, &socket);
	return 0;
}

inline_ int tcp_moved(const struct tcp_sock *tp, u64 bytes, bool sent)
{
	struct timeline_net *e;

	if (!task_uses((u64)tp))
		return 0;
	e = net_begin(sent ? TIMELINE_SEND : TIMELINE_RECEIVE, (u64)tp, true);
	if (!e)
		return 0;
	flow_of(tp, &e->flow);
	e->bytes = bytes;
	return emit_end(e);
}

inline_ void accepted(struct sock *sk, const struct sock_owner *owner)
{
	struct timeline_net *e;
	struct flow f = {};

	if (!flow_read(sk, &f) || !task_uses((u64)sk))
		return;
	e = net_begin(TIMELINE_ACCEPT, (u64)sk, true);
	if (!e)
		return;
	e->flow = f;
	emit_end(e);
}

TRACING(on_retransmit, "tp_btf/tcp_retransmit_skb")
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_skb_cb *cb = (void *)((struct sk_buff *)ctx[1])->cb;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct timeline_net *e;

	if (!tp || retransmit_failed(ctx) || !socket_wanted((u64)sk))
		return 0;
	e = net_begin(TIMELINE_RETRANSMIT, (u64)sk, false);
	if (!e)
		return 0;
	flow_of(tp, &e->flow);
	e->cause = retransmit_cause(tp, congestion_state(tp));
	e->bytes = BPF_CORE_READ(cb, end_seq) - BPF_CORE_READ(cb, seq);
	return emit_end(e);
}

/* A connection in the handshake has no socket yet. */
TRACING(on_synack, "tp_btf/tcp_retransmit_synack")
{
	struct request_sock *req = (struct request_sock *)ctx[1];
	struct timeline_net *e;

	if (filter.on)
		return 0;
	e = net_begin(TIMELINE_RETRANSMIT, 0, false);
	if (!e)
		return 0;
	ends_of(&req->__req_common, &e->flow);
	e->flow.lport = req->__req_common.skc_num;
	e->cause = RETRANSMIT_SYN_ACK;
	return emit_end(e);
}
