/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls of the command line's targets (target.bpf.h), from entry to return. A task may be in
 * several at once: by nesting, by recursion, by an interrupt. The hook is traced_calls().
 */
#ifndef CORETAP_TRACED_CALLS_BPF_H
#define CORETAP_TRACED_CALLS_BPF_H

#include "lib/filter.bpf.h"
#include "lib/stopped.bpf.h"
#include "lib/target.bpf.h"

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

inline_ bool is_kernel_address(u64 address)
{
	return address >> 63;
}

/*
 * Is a call that would return to this stack pointer over, when another
 * one would return to `now`? Kernel interrupts have separate stacks.
 */
inline_ bool has_left(u64 sp, u64 now)
{
	if (is_kernel_address(sp) != is_kernel_address(now) || now == SYSTEM_CALL)
		return is_kernel_address(sp);
	if (is_kernel_address(sp) && (sp ^ now) >= THREAD_BYTES)
		return false;
	return sp <= now;
}

/* A call that ends by a jump to another function: both have the same return address. */
inline_ bool ends_in(u64 sp, u64 id, const struct call_place *at)
{
	return sp == at->sp && sp != SYSTEM_CALL && id != at->id;
}

/*
 * Current calls of each task, innermost last, each with an `own_type`. An interrupt may
 * add calls at any time, but has removed them when the program continues: so a call is
 * written after `depth` is incremented, and read before `depth` is decremented.
 */
#define TRACED_CALLS(own_type) TRACED_CALLS_WITH(own_type, )
/* The same with more members in the task's record: declarations with semicolons. */
#define TRACED_CALLS_WITH(own_type, more)                                                     \
	struct traced_call {                                                                  \
		u64 start;                                                                    \
		u64 sp;                                                                       \
		u64 id;                                                                       \
		own_type own;                                                                 \
	};                                                                                    \
	struct traced_calls {                                                                 \
		u64 depth;                                                                    \
		u64 walking; /* for the tool: its stack is being walked */                    \
		more struct traced_call calls[CALL_LEVELS];                                   \
	};                                                                                    \
	TASK_SLOT(struct traced_calls)                                                        \
                                                                                              \
	inline_ struct traced_call *call_enters(const struct call_place *at)                  \
	{                                                                                     \
		struct traced_calls *all = current_slot(true);                                \
		struct traced_call *c;                                                        \
		u64 n, before;                                                                \
                                                                                              \
		if (!all)                                                                     \
			return NULL;                                                          \
		n = before = all->depth;                                                      \
		for (u32 i = 0; i < CALL_LEVELS && n; i++) {                                  \
			struct traced_call *last = &all->calls[(n - 1) & (CALL_LEVELS - 1)];  \
                                                                                              \
			if (!has_left(last->sp, at->sp) || ends_in(last->sp, last->id, at))   \
				break;                                                        \
			n--;                                                                  \
		}                                                                             \
		barrier_var(n); /* the loop exits into one verifier state */                  \
		if (n < before)                                                               \
			count_n(LEDGER_UNMATCHED, before - n);                                \
		if (n >= call_levels) {                                                       \
			all->depth = n;                                                       \
			count(LEDGER_UNTRACKED);                                              \
			return NULL;                                                          \
		}                                                                             \
		all->depth = n + 1;                                                           \
		barrier();                                                                    \
		c = &all->calls[n & (CALL_LEVELS - 1)];                                       \
		c->start = 0;                                                                 \
		c->sp = at->sp;                                                               \
		c->id = at->id;                                                               \
		return c;                                                                     \
	}                                                                                     \
                                                                                              \
	/* The call that returns; inner calls whose return was not seen                       \
	 * are dropped. NULL: its entry was filtered or not seen. */                          \
	inline_ struct traced_call *call_returns(const struct call_place *at, u64 **depth,    \
						 u64 *left)                                   \
	{                                                                                     \
		struct traced_calls *all = current_slot(false);                               \
		bool found = false;                                                           \
		u64 n, before;                                                                \
                                                                                              \
		if (!all || tracing_stopped)                                                  \
			return NULL;                                                          \
		n = before = all->depth;                                                      \
		for (u32 i = 0; i < CALL_LEVELS && n; i++) {                                  \
			struct traced_call *c = &all->calls[--n & (CALL_LEVELS - 1)];         \
                                                                                              \
			found = (c->id == at->id || at->id == ANY_CALL) &&                    \
				is_return_of(c->sp, at->sp);                                  \
			if (found)                                                            \
				break;                                                        \
		}                                                                             \
		if (!found)                                                                   \
			return NULL;                                                          \
		barrier_var(n);                                                               \
		*depth = &all->depth;                                                         \
		*left = n;                                                                    \
		if (n + 1 < before && all->calls[(before - 1) & (CALL_LEVELS - 1)].sp ==      \
					      all->calls[n & (CALL_LEVELS - 1)].sp) {         \
			all->calls[n & (CALL_LEVELS - 1)].sp = CALL_IS_OVER;                  \
			*left = before;                                                       \
		} else if (n + 1 < before) {                                                  \
			count_n(LEDGER_UNMATCHED, before - 1 - n);                            \
		} else if (n && all->calls[(n - 1) & (CALL_LEVELS - 1)].sp == CALL_IS_OVER) { \
			*left = n - 1;                                                        \
		}                                                                             \
		return &all->calls[n & (CALL_LEVELS - 1)];                                    \
	}

/*
 * The programs; returns come first, as they must be attached first. Before this, the tool defines
 *   call_begins(const struct call_place *at, struct traced_call *c)
 *   call_ends(const struct call_place *at, struct traced_call *c, u64 ns)
 */
#define ON_CALLS                                                                                  \
	inline_ int call_entered(const struct call_place *at)                                     \
	{                                                                                         \
		struct traced_call *c;                                                            \
                                                                                                  \
		if (at->id >= target_count || tracing_stopped || !keep_current())                 \
			return 0;                                                                 \
		c = call_enters(at);                                                              \
		if (!c)                                                                           \
			return 0;                                                                 \
		call_begins(at, c);                                                               \
		c->start = bpf_ktime_get_ns();                                                    \
		return 0;                                                                         \
	}                                                                                         \
	inline_ int call_returned(const struct call_place *at)                                    \
	{                                                                                         \
		u64 now = bpf_ktime_get_ns(), *depth, left;                                       \
		struct traced_call *c = call_returns(at, &depth, &left);                          \
                                                                                                  \
		if (!c)                                                                           \
			return 0;                                                                 \
		call_ends(at, c, since(c->start, now));                                           \
		barrier();                                                                        \
		*depth = left;                                                                    \
		return 0;                                                                         \
	}                                                                                         \
	inline_ int function_entered(struct pt_regs *ctx, u64 id)                                 \
	{                                                                                         \
		struct call_place at = {                                                          \
			.ctx = ctx, .regs = ctx, .id = id, .sp = sp_after_return(ctx)             \
		};                                                                                \
                                                                                                  \
		return call_entered(&at);                                                         \
	}                                                                                         \
	inline_ int function_returned(struct pt_regs *ctx, u64 id)                                \
	{                                                                                         \
		struct call_place at = {                                                          \
			.ctx = ctx, .regs = ctx, .id = id, .sp = PT_REGS_SP(ctx)                  \
		};                                                                                \
                                                                                                  \
		at.result = PT_REGS_RC(ctx);                                                      \
		return call_returned(&at);                                                        \
	}                                                                                         \
	SEC("target/kernel.return") int target_kernel_return(struct pt_regs *ctx)                 \
	{                                                                                         \
		return function_returned(ctx, target_id(ctx, TARGET_KERNEL));                     \
	}                                                                                         \
	SEC("target/kernel") int target_kernel(struct pt_regs *ctx)                               \
	{                                                                                         \
		return function_entered(ctx, target_id(ctx, TARGET_KERNEL));                      \
	}                                                                                         \
	ON_USER_FUNCTION("target/user.return", target_user_return,                                \
			 function_returned(ctx, target_id(ctx, TARGET_USER)))                     \
	ON_USER_FUNCTION("target/user", target_user,                                              \
			 function_entered(ctx, target_id(ctx, TARGET_USER)))                      \
	SEC("tp_btf/sys_exit") int target_sys_exit(u64 *ctx)                                      \
	{                                                                                         \
		struct call_place at = {                                                          \
			.ctx = ctx, .regs = (void *)ctx[0], .sp = SYSTEM_CALL, .result = ctx[1]   \
		};                                                                                \
                                                                                                  \
		s32 number = call_number(at.regs);                                                \
                                                                                                  \
		/* A return from a signal handler has no call number. */                          \
		at.id = number == NO_CALL ? ANY_CALL : target_call(target_ends, number, at.regs); \
		if (number != NO_CALL && at.id >= target_count)                                   \
			return 0;                                                                 \
		return call_returned(&at);                                                        \
	}                                                                                         \
	SEC("tp_btf/sys_enter") int target_sys_enter(u64 *ctx)                                    \
	{                                                                                         \
		struct call_place at = { .ctx = ctx, .regs = (void *)ctx[0], .sp = SYSTEM_CALL }; \
                                                                                                  \
		at.id = target_call(target_entries, (s32)ctx[1], at.regs);                        \
		return call_entered(&at);                                                         \
	}

#endif
