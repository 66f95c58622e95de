/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls of the command line's targets (target.bpf.h), from entry to return. A task may be in
 * several at once: by nesting, by recursion, by an interrupt. The hook is traced_calls().
 *
 * Contexts: wherever the targets are; an interrupt may nest. Counts UNMATCHED, UNTRACKED.
 */
#ifndef CORETAP_TRACED_CALLS_BPF_H
#define CORETAP_TRACED_CALLS_BPF_H

#include "lib/core/filter.bpf.h"
#include "lib/core/stopped.bpf.h"
#include "lib/targets/target.bpf.h"

#define ANY_CALL ~0ULL
/* As sp: the call ended by a jump to another function, whose return comes next. */
#define CALL_IS_OVER (~0ULL - 1)
#define SYSTEM_CALL ~0ULL /* stack pointer of a system call: all kernel code runs within it */

/* Maximum nesting depth of timed calls. */
OPT_OR(__u32, call_levels, CALL_LEVELS);

/* The entry or the return of a call. */
struct call_place {
	void *ctx; /* of the program */
	struct pt_regs *regs;
	u64 id;
	u64 sp;     /* at an entry: the value after the function's return; at a return: now */
	u64 result; /* at a return */
};

/* Is an event of this target by a wanted task, while tracing goes on? */
inline_ bool target_wanted(u64 id)
{
	return id < target_count && !tracing_stopped && keep_current();
}

inline_ bool is_kernel_address(u64 address)
{
	return address >> 63;
}

/* The same for user stacks: a signal handler may have a separate one, above or below the other. */
inline_ bool left_stack(u64 sp, u64 now)
{
	struct task_struct *t = running_task();
	u64 bytes = OF_RUNNING(t, sas_ss_size), first = OF_RUNNING(t, sas_ss_sp);
	bool in_handler = sp - first < bytes;

	return in_handler == (now - first < bytes) ? sp <= now : in_handler;
}

/*
 * Is a call that would return to this stack pointer over, when another one would
 * return to `now`? Kernel interrupts have separate stacks. 0: its program was replaced by exec.
 */
inline_ bool has_left(u64 sp, u64 now)
{
	if (!sp)
		return true;
	if (is_kernel_address(sp) != is_kernel_address(now) || now == SYSTEM_CALL)
		return is_kernel_address(sp);
	if (is_kernel_address(sp))
		return (sp ^ now) < THREAD_BYTES && sp <= now;
	return left_stack(sp, now);
}

/* A call that ends by a jump to another function: both have the same return address. */
inline_ bool ends_in(u64 sp, u64 id, const struct call_place *at)
{
	return sp == at->sp && sp != SYSTEM_CALL && id != at->id;
}

/*
 * Current calls of each task, innermost last. An interrupt may add calls at any time,
 * but has removed them when the program continues: so a call is written after
 * `depth` is incremented, and read before `depth` is decremented.
 */
struct call_stack {
	u64 depth;
	u64 walking; /* for the tool: its stack is being walked */
};

struct traced_call {
	u64 start;
	u64 sp;
	u64 id;
};

/* The running task's calls, and one of them. */
inline_ struct call_stack *call_stack(bool make);
inline_ struct traced_call *call_at(struct call_stack *s, u64 n);

/*
 * Defines them; call_type begins with struct traced_call. `more` are
 * members of the task's record: declarations with semicolons, or nothing.
 */
#define TRACED_CALLS(call_type, more)                                         \
	struct traced_calls {                                                 \
		struct call_stack stack;                                      \
		more call_type at[CALL_LEVELS];                               \
	};                                                                    \
	TASK_SLOT(struct traced_calls)                                        \
	inline_ struct call_stack *call_stack(bool make)                      \
	{                                                                     \
		return (struct call_stack *)current_slot(make);               \
	}                                                                     \
	inline_ struct traced_call *call_at(struct call_stack *s, u64 n)      \
	{                                                                     \
		struct traced_calls *all = (struct traced_calls *)s;          \
                                                                              \
		return (struct traced_call *)&all->at[n & (CALL_LEVELS - 1)]; \
	}

/* The number of calls that are still under way when this one begins. */
inline_ u64 calls_left_at(struct call_stack *all, const struct call_place *at)
{
	u64 n = all->depth;

	for (u32 i = 0; i < CALL_LEVELS && n; i++) {
		struct traced_call *last = call_at(all, n - 1);

		if (!has_left(last->sp, at->sp) || ends_in(last->sp, last->id, at))
			break;
		n--;
	}
	barrier_var(n); /* the loop exits into one verifier state */
	return n;
}

inline_ struct traced_call *call_enters(const struct call_place *at)
{
	struct call_stack *all = call_stack(true);
	struct traced_call *c;
	u64 n, before;

	if (!all)
		return NULL;
	before = all->depth;
	n = calls_left_at(all, at);
	if (n < before)
		count_n(LEDGER_UNMATCHED, before - n);
	if (n >= call_levels) {
		all->depth = n;
		count(LEDGER_UNTRACKED);
		return NULL;
	}
	all->depth = n + 1;
	barrier();
	c = call_at(all, n);
	c->start = 0;
	c->sp = at->sp;
	c->id = at->id;
	return c;
}

/*
 * The call that returns; inner calls whose return was not seen are
 * dropped: their number. NULL: its entry was filtered or not seen.
 */
inline_ struct traced_call *call_found(const struct call_place *at, u64 **depth, u64 *left,
				       u64 *dropped)
{
	struct call_stack *all = call_stack(false);
	bool found = false;
	u64 n, before;

	if (!all || tracing_stopped)
		return NULL;
	n = before = all->depth;
	for (u32 i = 0; i < CALL_LEVELS && n; i++) {
		struct traced_call *c = call_at(all, --n);

		found = (c->id == at->id || at->id == ANY_CALL) && is_return_of(c->sp, at->sp);
		if (found)
			break;
	}
	if (!found)
		return NULL;
	barrier_var(n);
	*depth = &all->depth;
	*left = n;
	if (n + 1 < before && call_at(all, before - 1)->sp == call_at(all, n)->sp) {
		call_at(all, n)->sp = CALL_IS_OVER;
		*left = before;
	} else if (n + 1 < before) {
		*dropped = before - 1 - n;
	} else if (n && call_at(all, n - 1)->sp == CALL_IS_OVER) {
		*left = n - 1;
	}
	return call_at(all, n);
}

/* The same; those that are dropped are counted. */
inline_ struct traced_call *call_returns(const struct call_place *at, u64 **depth, u64 *left)
{
	u64 dropped = 0;
	struct traced_call *c = call_found(at, depth, left, &dropped);

	if (dropped)
		count_n(LEDGER_UNMATCHED, dropped);
	return c;
}

#endif
