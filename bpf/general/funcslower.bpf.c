// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* funcslower: slow function calls. */
#include "lib/stack/task_walk.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/stack/stack.bpf.h"
#include "lib/targets/each_function.bpf.h"
#include "lib/targets/return_address.bpf.h"
#include "lib/targets/timed_call.bpf.h"
#include "general/funcslower.h"

RECORD(funcslower_event);

OPT_OR(__u64, min_ns, 1000000);
OPT(__u32, arguments); /* number of arguments shown */
OPT(bool, tree);

struct entered {
	struct traced_call call;
	u64 arguments[FUNCSLOWER_ARGUMENTS];
	/* With `tree`: */
	u64 inner_ns, hidden_ns;
	u64 back; /* where it returns to; 0: not a user function */
	u32 hidden;
	u32 number; /* of a system call, as in struct funcslower_event */
	u8 depth;
	u8 told; /* a call within it was sent, so it must be, too */
	u8 pad[6];
};

TRACED_CALLS(struct entered, u64 trees;)

inline_ u32 number_at(const struct call_place *at)
{
	return at->sp == SYSTEM_CALL ?
		       1 + call_index(call_number(at->regs), call_is_compat(at->regs)) :
		       0;
}

/* An interrupt during the walk may also end a slow call. */
inline_ u64 user_stack_now(void *ctx)
{
	struct call_stack *all = call_stack(false);
	u64 id;

	if (!all || all->walking)
		return counted(LEDGER_STACK_FAILED);
	all->walking = 1;
	id = stack_of_user(ctx, 0);
	all->walking = 0;
	return id;
}

inline_ void call_begins(const struct call_place *at, struct traced_call *c)
{
	if (arguments)
		place_arguments(at, at->sp == SYSTEM_CALL, ((struct entered *)c)->arguments);
}

inline_ void call_ends(const struct call_place *at, struct traced_call *c, u64 ns)
{
	struct funcslower_event *e;
	u64 user_stack;

	if (ns < min_ns) {
		count(LEDGER_FILTERED);
		return;
	}
	user_stack = stack_user ? user_stack_now(at->ctx) : 0;
	e = emit_begin_stack(sizeof(*e));
	if (!e)
		return;
	e->head.time_ns = c->start;
	e->user_stack = user_stack;
	e->latency_ns = ns;
	e->result = at->result;
	e->target = c->id;
	e->call = number_at(at);
	if (arguments)
		__builtin_memcpy(e->arguments, ((struct entered *)c)->arguments,
				 sizeof(e->arguments));
	identify_current(&e->who);
	emit_end_stack(at->ctx, e, sizeof(*e));
}

inline_ struct entered *entered_at(struct call_stack *all, u64 n)
{
	return (struct entered *)call_at(all, n);
}

inline_ void fill_node(struct funcslower_node *e, struct call_stack *all, const struct entered *c,
		       u64 ns)
{
	e->call.head.time_ns = c->call.start;
	e->call.latency_ns = ns;
	e->call.target = c->call.id;
	e->call.call = c->number;
	if (arguments)
		__builtin_memcpy(e->call.arguments, c->arguments, sizeof(e->call.arguments));
	e->tree = ((struct traced_calls *)all)->trees;
	if (c->depth)
		e->caller = call_at(all, c->depth - 1)->start;
	e->inner_ns = c->inner_ns;
	e->hidden_ns = c->hidden_ns;
	e->hidden = c->hidden;
	e->depth = c->depth;
}

/*
 * Sends a call that has ended, or adds it to those that its caller hides. A short call
 * is sent, too, if its caller was sent before it, as after a jump to another function.
 */
inline_ void tell(struct call_stack *all, struct entered *c, u64 ns, u64 result,
		  enum funcslower_end end, bool last)
{
	struct entered *caller = c->depth ? entered_at(all, c->depth - 1) : NULL;
	struct funcslower_node *e;

	if (caller && end != FUNCSLOWER_UNSEEN && end != FUNCSLOWER_EXEC)
		caller->inner_ns += ns;
	if (ns < min_ns && !c->told && !(caller && caller->call.sp == CALL_IS_OVER)) {
		if (caller) {
			caller->hidden += c->hidden + 1;
			caller->hidden_ns += ns;
		}
		count(LEDGER_FILTERED);
		return;
	}
	if (caller)
		caller->told = 1;
	e = emit_room(sizeof(*e), 0);
	if (!e)
		return;
	__builtin_memset(e, 0, sizeof(*e));
	fill_node(e, all, c, ns);
	e->call.result = result;
	e->task = bpf_get_current_task();
	e->end = end;
	e->last = last;
	identify_current(&e->call.who);
	emit_end(e);
}

/* A call that ended without a return. A separate function, so that it is verified once. */
__noinline int tell_one_ended(u64 n, u32 end)
{
	struct call_stack *all;
	struct entered *c;

	if (!tree)
		return 0;
	all = call_stack(false);
	if (!all)
		return 0;
	c = entered_at(all, n);
	if (c->call.sp == CALL_IS_OVER) /* sent before */
		return 0;
	tell(all, c, since(c->call.start, bpf_ktime_get_ns()), 0,
	     c->call.sp ? end : FUNCSLOWER_EXEC, !n);
	return 0;
}

/* From the `to`th down to the `from`th. */
inline_ void tell_ended(u64 from, u64 to, enum funcslower_end end)
{
	for (u32 i = 0; i < CALL_LEVELS && to > from; i++)
		tell_one_ended(--to, end);
}

#define CALL_IS_LEFT 1 /* as sp: below all stacks */

/* Marks calls from the same frame as this one that did not jump to it, so they are over. */
inline_ void leave_same_frame(struct call_stack *all, const struct call_place *at, u64 back)
{
	u64 n = all->depth;

	for (u32 i = 0; i < CALL_LEVELS && n; i++) {
		struct entered *c = entered_at(all, --n);

		if (c->call.sp != at->sp || same_return(back, c->back))
			break;
		c->call.sp = CALL_IS_LEFT;
	}
}

inline_ int node_entered(const struct call_place *at)
{
	u64 back = is_kernel_address(at->sp) ? 0 : return_address(at->regs), left;
	struct call_stack *all = call_stack(false);
	struct traced_call *c;
	struct entered *e;

	if (all) {
		if (back)
			leave_same_frame(all, at, back);
		left = calls_left_at(all, at);
		tell_ended(left, all->depth, FUNCSLOWER_UNSEEN);
		all->depth = left;
	}
	c = call_enters(at);
	all = c ? call_stack(false) : NULL;
	if (!all)
		return 0;
	e = (struct entered *)c;
	e->inner_ns = e->hidden_ns = 0;
	e->hidden = 0;
	e->told = 0;
	e->back = back;
	e->depth = all->depth - 1;
	e->number = number_at(at);
	if (!e->depth)
		((struct traced_calls *)all)->trees++;
	if (arguments)
		place_arguments(at, at->sp == SYSTEM_CALL, e->arguments);
	c->start = bpf_ktime_get_ns();
	return 0;
}

inline_ int node_returned(const struct call_place *at)
{
	u64 now = bpf_ktime_get_ns(), *depth, left, dropped = 0;
	struct traced_call *c = call_found(at, &depth, &left, &dropped);
	struct call_stack *all = c ? call_stack(false) : NULL;
	struct entered *e = (struct entered *)c;
	u64 n;

	if (!all)
		return 0;
	n = e->depth;
	if (dropped)
		tell_ended(n + 1, n + 1 + dropped, FUNCSLOWER_UNSEEN);
	tell(all, e, since(c->start, now), at->result, FUNCSLOWER_RETURNED, !left);
	barrier();
	*depth = left;
	return 0;
}

inline_ int place_entered(const struct call_place *at, const bool system_call)
{
	if (!tree)
		return timed_call_entered(at);
	return target_wanted(at->id) ? node_entered(at) : 0;
}

inline_ int place_returned(const struct call_place *at, const bool system_call)
{
	return tree ? node_returned(at) : timed_call_returned(at);
}

/* With --tree: a thread's open calls end with it. */
TRACING(on_thread_exit, "tp_btf/sched_process_exit")
{
	struct call_stack *all = call_stack(false);

	if (!all || tracing_stopped)
		return 0;
	tell_ended(0, all->depth, FUNCSLOWER_EXITED);
	barrier();
	all->depth = 0;
	return 0;
}

/* With --tree: the calls of the program that was replaced end; those of the kernel go on. */
TRACING(on_exec, "tp_btf/sched_process_exec")
{
	struct call_stack *all = call_stack(false);

	if (!all)
		return 0;
	for (u64 i = 0; i < CALL_LEVELS && i < all->depth; i++) {
		struct traced_call *c = call_at(all, i);

		if (!is_kernel_address(c->sp))
			c->sp = 0;
	}
	return 0;
}

/* With --tree: calls that have not ended. */
SEC("iter/task")
int on_open_calls(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	u64 now = bpf_ktime_get_ns();
	struct call_stack *all;

	all = t ? (struct call_stack *)task_slot(t) : NULL;
	if (!all)
		return 0;
	for (u64 i = 0; i < CALL_LEVELS && i < all->depth; i++) {
		struct entered *c = entered_at(all, i);
		struct funcslower_node e = {};

		u64 ns = since(c->call.start, now);

		if (c->call.sp == CALL_IS_OVER || !c->call.start)
			continue;
		if (ns < min_ns && !c->told) {
			count(LEDGER_FILTERED);
			continue;
		}
		fill_node(&e, all, c, ns);
		e.task = (u64)t;
		e.end = c->call.sp ? FUNCSLOWER_OPEN : FUNCSLOWER_EXEC;
		identify_task(&e.call.who, t);
		bpf_seq_write(ctx->meta->seq, &e, sizeof(e));
	}
	return 0;
}
