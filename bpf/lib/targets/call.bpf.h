/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls of user functions, from entry to return, matched by the task's stack pointer.
 *
 * Contexts: the running task, outside of interrupts, preemptible. Counts UNMATCHED.
 */
#ifndef CORETAP_CALL_BPF_H
#define CORETAP_CALL_BPF_H

#include "lib/core/task.bpf.h"

/*
 * Since 6.13 the kernel gives programs of this type one stack for each CPU, assuming that no other
 * task runs in between; on user functions one can, and then both share the stack. Programs with a
 * tail call use the task's stack: those of ON_USER_FUNCTION contain one that is never executed.
 */
OPT(bool, never);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} no_programs SEC(".maps");

/* A program at a function's entry or return: section, name, and its return value (uses `ctx`). */
#define ON_USER_FUNCTION(section, name, result)              \
	SEC(section)                                         \
	int name(struct pt_regs *ctx)                        \
	{                                                    \
		if (never)                                   \
			bpf_tail_call(ctx, &no_programs, 0); \
		return result;                               \
	}

/* The outermost call in progress in a task; part of its TASK_SLOT. */
struct call {
	u64 start; /* 0: none */
	u64 sp;    /* the stack pointer after its return */
	u64 inner; /* calls within it */
};

/* Call at the function's entry. */
inline_ u64 sp_after_return(struct pt_regs *ctx)
{
	return SP_OF(ctx) + RETURN_ADDRESS_BYTES;
}

/*
 * Is this the return of the call that started with this sp_after_return()?
 * `sp`: now, at the return instruction or, in the kernel's return probe,
 * after it. If two calls match, the inner one returns first.
 */
inline_ bool is_return_of(u64 after_return, u64 sp)
{
	return after_return - sp <= RETURN_ADDRESS_BYTES;
}

/*
 * False for a call within another one (gethostbyname() calls gethostbyname_r()).
 * A call that was left by longjmp() is over once the stack is as short as at its
 * entry; calls taken as inner ones meanwhile are counted. The same stack pointer
 * twice: two names of one file are probed (overlays), and this is one call.
 */
inline_ bool call_begin(struct call *c, struct pt_regs *ctx)
{
	u64 sp = sp_after_return(ctx);

	if (c->start && sp < c->sp) {
		c->inner++;
		return false;
	}
	if (c->start && c->inner)
		count_n(LEDGER_UNMATCHED, c->inner);
	c->sp = sp;
	c->inner = 0;
	c->start = bpf_ktime_get_ns();
	return true;
}

/* True once for each call that was started. */
inline_ bool call_end(struct call *c, struct pt_regs *ctx)
{
	return c->start && is_return_of(c->sp, SP_OF(ctx));
}

#endif
