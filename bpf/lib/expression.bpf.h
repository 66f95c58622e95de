/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Expressions of the command line. The loader writes the instructions compiled from
 * them into two functions, before the program is loaded (src/program/pads.cpp).
 */
#ifndef CORETAP_EXPRESSION_BPF_H
#define CORETAP_EXPRESSION_BPF_H

#include "lib/expression.h"
#include "lib/filter.bpf.h"
#include "lib/program.bpf.h"
#include "lib/stopped.bpf.h"
#include "lib/syscall.bpf.h"
#include "lib/target.bpf.h"
#include "lib/traced_calls.bpf.h"

OPT(__u64, expression_uses);
OPT(bool, expression_filters); /* is there a filter? */
OPT(bool, expression_short);   /* is the filter EXPRESSION_SHORT? */
OPT(bool, expression_pairs);
/* By target number: are entries of this target remembered? */
const volatile __u8 expression_paired[EXPRESSION_PAIRED] = {};

/* r6: in, r7: out, r9: number of the target. The verifier removes the unused part of the room.
 */
#define EXPRESSION_PAD(which, size, in, out, id)                                               \
	({                                                                                     \
		register u64 in_ asm("r6") = (u64)(in);                                        \
		register u64 out_ asm("r7") = (u64)(out);                                      \
		register u64 id_ asm("r9") = (id);                                             \
		register u64 result_ asm("r0");                                                \
                                                                                               \
		asm volatile("r0 = %[mark]; r0 = %[pad]; .rept %[room]; goto +0; .endr"        \
			     : "=r"(result_), "+r"(in_), "+r"(out_), "+r"(id_)                 \
			     : [mark] "i"(EXPRESSION_MARK), [pad] "i"(which), [room] "i"(size) \
			     : "r1", "r2", "r3", "r4", "r5", "r8", "memory");                  \
		result_;                                                                       \
	})

/* Separate functions, so that the instructions have a stack frame to themselves. */
static __attribute__((noinline)) u64 expression_filter(struct expression_in *in, u64 id)
{
	return EXPRESSION_PAD(EXPRESSION_FILTER, EXPRESSION_ROOM, in, 0, id);
}

static __attribute__((noinline)) u64 expression_values(struct expression_in *in,
						       struct expression_out *out, u64 id)
{
	return EXPRESSION_PAD(EXPRESSION_OUTPUT, EXPRESSION_ROOM, in, out, id);
}

/* Since 6.8 (41f6f64e6999). */
struct bpf_jmp_history_entry {
	u32 idx;
};

/*
 * Before 6.8 the verifier tracks bounds of a spilled scalar from branches, but not
 * that another function has branched on it: it treats different states as equal,
 * and drops instructions. A scalar written by two stores has no tracked bounds.
 */
inline_ void expression_forget(struct expression_in *in)
{
	volatile u8 *bytes = (void *)in;

	if (bpf_core_type_exists(struct bpf_jmp_history_entry))
		return;
	for (u32 i = 7; i < __builtin_offsetof(struct expression_in, comm); i += 8)
		bytes[i] = bytes[i];
}

/* An address as a scalar, for arithmetic in the instructions. */
inline_ u64 expression_address(void *p)
{
	u64 address = (u64)p;

	/* Negation makes the verifier treat the pointer as a scalar. */
	asm volatile("%0 = -%0; %0 = -%0" : "+r"(address));
	return address;
}

/* Inputs that are the same for all kinds of targets. */
inline_ void expression_inputs(struct expression_in *in, void *ctx)
{
	if (expression_uses & EXPRESSION_USES_CPU)
		in->cpu = bpf_get_smp_processor_id();
	if (expression_uses & EXPRESSION_USES_CONTEXT)
		in->context = expression_address(ctx);
	if (expression_uses & EXPRESSION_USES_TASK)
		in->task = bpf_get_current_task();
	if (expression_uses & EXPRESSION_USES_IDS) {
		in->pid = current_tgid();
		in->tid = current_tid();
	}
	if (expression_uses & EXPRESSION_USES_USER) {
		u64 ids = bpf_get_current_uid_gid();

		in->uid = (u32)ids;
		in->gid = ids >> 32;
	}
	if (expression_uses & EXPRESSION_USES_COMM)
		bpf_get_current_comm(in->comm, sizeof(in->comm));
	expression_forget(in);
}

/* Does the filter accept this event? False: the reason is counted. */
inline_ bool expression_wanted(struct expression_in *in, u64 id)
{
	u64 verdict;

	if (!expression_filters)
		return true;
	verdict = expression_short ?
			  EXPRESSION_PAD(EXPRESSION_SHORT, EXPRESSION_SHORT_ROOM, in, 0, id) :
			  expression_filter(in, id);
	if (verdict == EXPRESSION_YES)
		return true;
	count(verdict == EXPRESSION_FAULT ? LEDGER_UNJUDGED : LEDGER_FILTERED);
	return false;
}

inline_ bool is_paired(u64 id)
{
	if (!expression_pairs || id >= EXPRESSION_PAIRED)
		return false;
	barrier_var(id);
	return expression_paired[id & (EXPRESSION_PAIRED - 1)];
}

struct entered_call {
	u64 arguments[6];
};

/* Calls whose entries are remembered, in the task's record; `more`: additional members of it. */
#define PLACE_CALLS(more)                                                                 \
	TRACED_CALLS_WITH(struct entered_call, more)                                      \
                                                                                          \
	inline_ int pair_entered(const struct call_place *at, const u64 *arguments)       \
	{                                                                                 \
		struct traced_call *c;                                                    \
                                                                                          \
		if (at->id >= target_count || tracing_stopped || !keep_current())         \
			return 0;                                                         \
		c = call_enters(at);                                                      \
		if (!c)                                                                   \
			return 0;                                                         \
		__builtin_memcpy(c->own.arguments, arguments, sizeof(c->own.arguments));  \
		c->start = bpf_ktime_get_ns();                                            \
		return 0;                                                                 \
	}                                                                                 \
	/* False: its entry was filtered or not seen. */                                  \
	inline_ bool pair_returned(const struct call_place *at, struct expression_in *in) \
	{                                                                                 \
		u64 now = bpf_ktime_get_ns(), *depth, left;                               \
		struct traced_call *c = call_returns(at, &depth, &left);                  \
                                                                                          \
		if (!c)                                                                   \
			return false;                                                     \
		in->latency = since(c->start, now);                                       \
		__builtin_memcpy(in->entry, c->own.arguments, sizeof(in->entry));         \
		barrier();                                                                \
		*depth = left;                                                            \
		return true;                                                              \
	}

/*
 * The programs at the targets that the command line names (target.bpf.h);
 * returns come first, as they must be attached first; the hook is
 * traced_by_word(). They call body(ctx, in, id). PLACE_CALLS comes before.
 */
#define ON_PLACES(body)                                                                          \
	inline_ int at_place(void *ctx, struct expression_in *in, u64 id)                        \
	{                                                                                        \
		if (id >= target_count || tracing_stopped || !keep_current())                    \
			return 0;                                                                \
		expression_inputs(in, ctx);                                                      \
		return expression_wanted(in, id) ? body(ctx, in, id) : 0;                        \
	}                                                                                        \
	inline_ int at_function(struct pt_regs *ctx, u64 id)                                     \
	{                                                                                        \
		struct expression_in in = {};                                                    \
                                                                                                 \
		if (expression_pairs || expression_uses & EXPRESSION_USES_ARGUMENTS)             \
			call_registers(ctx, in.arguments);                                       \
		if (is_paired(id)) {                                                             \
			struct call_place at = {                                                 \
				.ctx = ctx, .regs = ctx, .id = id, .sp = sp_after_return(ctx)    \
			};                                                                       \
                                                                                                 \
			return pair_entered(&at, in.arguments);                                  \
		}                                                                                \
		return at_place(ctx, &in, id);                                                   \
	}                                                                                        \
	inline_ int at_return(struct pt_regs *ctx, u64 id)                                       \
	{                                                                                        \
		struct expression_in in = {};                                                    \
                                                                                                 \
		in.result = PT_REGS_RC(ctx);                                                     \
		if (is_paired(id)) {                                                             \
			struct call_place at = {                                                 \
				.ctx = ctx, .regs = ctx, .id = id, .sp = PT_REGS_SP(ctx)         \
			};                                                                       \
                                                                                                 \
			if (!pair_returned(&at, &in))                                            \
				return 0;                                                        \
		}                                                                                \
		return at_place(ctx, &in, id);                                                   \
	}                                                                                        \
	inline_ int at_event(void *ctx, u64 id)                                                  \
	{                                                                                        \
		struct expression_in in = {};                                                    \
                                                                                                 \
		if (expression_uses & EXPRESSION_USES_RECORD)                                    \
			in.record = (u64)ctx;                                                    \
		return at_place(ctx, &in, id);                                                   \
	}                                                                                        \
	SEC("target/kernel.return") int target_kernel_return(struct pt_regs *ctx)                \
	{                                                                                        \
		return at_return(ctx, target_id(ctx, TARGET_KERNEL));                            \
	}                                                                                        \
	SEC("target/kernel") int target_kernel(struct pt_regs *ctx)                              \
	{                                                                                        \
		return at_function(ctx, target_id(ctx, TARGET_KERNEL));                          \
	}                                                                                        \
	ON_USER_FUNCTION("target/user.return", target_user_return,                               \
			 at_return(ctx, target_id(ctx, TARGET_USER)))                            \
	ON_USER_FUNCTION("target/user", target_user,                                             \
			 at_function(ctx, target_id(ctx, TARGET_USER)))                          \
	ON_USER_FUNCTION("target/usdt", target_usdt, at_event(ctx, target_id(ctx, TARGET_USER))) \
	SEC("target/event") int target_event(void *ctx)                                          \
	{                                                                                        \
		return at_event(ctx, target_id(ctx, TARGET_EVENT));                              \
	}                                                                                        \
	SEC("tp_btf/sys_exit") int target_sys_exit(u64 *ctx)                                     \
	{                                                                                        \
		struct pt_regs *regs = (void *)ctx[0];                                           \
		struct expression_in in = { .result = ctx[1] };                                  \
		u64 id = target_call(target_ends, call_number(regs), regs);                      \
                                                                                                 \
		if (expression_uses & EXPRESSION_USES_ARGUMENTS)                                 \
			call_arguments(regs, false, in.arguments);                               \
		if (is_paired(id)) {                                                             \
			struct call_place at = {                                                 \
				.ctx = ctx, .regs = regs, .id = id, .sp = SYSTEM_CALL            \
			};                                                                       \
                                                                                                 \
			if (!pair_returned(&at, &in))                                            \
				return 0;                                                        \
		}                                                                                \
		return at_place(ctx, &in, id);                                                   \
	}                                                                                        \
	SEC("tp_btf/sys_enter") int target_sys_enter(u64 *ctx)                                   \
	{                                                                                        \
		struct pt_regs *regs = (void *)ctx[0];                                           \
		struct expression_in in = {};                                                    \
		u64 id = target_call(target_entries, (s32)ctx[1], regs);                         \
                                                                                                 \
		if (expression_pairs || expression_uses & EXPRESSION_USES_ARGUMENTS)             \
			call_arguments(regs, false, in.arguments);                               \
		if (is_paired(id)) {                                                             \
			struct call_place at = {                                                 \
				.ctx = ctx, .regs = regs, .id = id, .sp = SYSTEM_CALL            \
			};                                                                       \
                                                                                                 \
			return pair_entered(&at, in.arguments);                                  \
		}                                                                                \
		return at_place(ctx, &in, id);                                                   \
	}

#endif
