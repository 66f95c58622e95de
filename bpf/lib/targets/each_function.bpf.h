/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs at entries and returns of the targets that are functions or system calls; the program
 * that includes this defines place_entered() and place_returned(). Returns come first, as they
 * must be attached first.
 *
 * Contexts: wherever the targets are; an interrupt may nest.
 */
#ifndef CORETAP_EACH_FUNCTION_BPF_H
#define CORETAP_EACH_FUNCTION_BPF_H

#include "lib/core/program.bpf.h"
#include "lib/targets/traced_calls.bpf.h"

inline_ int place_entered(const struct call_place *at, const bool system_call);
inline_ int place_returned(const struct call_place *at, const bool system_call);

/* At an entry. */
inline_ void place_arguments(const struct call_place *at, const bool system_call, u64 *to)
{
	if (system_call)
		call_arguments(at->regs, false, to);
	else
		call_registers(at->regs, to);
}

inline_ int function_entered(struct pt_regs *ctx, u64 id)
{
	struct call_place at = { .ctx = ctx, .regs = ctx, .id = id, .sp = sp_after_return(ctx) };

	return place_entered(&at, false);
}

inline_ int function_returned(struct pt_regs *ctx, u64 id)
{
	struct call_place at = { .ctx = ctx, .regs = ctx, .id = id, .sp = SP_OF(ctx) };

	at.result = PT_REGS_RC(ctx);
	return place_returned(&at, false);
}

SEC("target/kernel.return")
int target_kernel_return(struct pt_regs *ctx)
{
	return function_returned(ctx, target_id(ctx, TARGET_KERNEL));
}

SEC("target/kernel")
int target_kernel(struct pt_regs *ctx)
{
	return function_entered(ctx, target_id(ctx, TARGET_KERNEL));
}

ON_USER_FUNCTION("target/user.return", target_user_return,
		 function_returned(ctx, target_id(ctx, TARGET_USER)))
ON_USER_FUNCTION("target/user", target_user, function_entered(ctx, target_id(ctx, TARGET_USER)))

TRACING(target_sys_exit, "tp_btf/sys_exit")
{
	struct call_place at = {
		.ctx = ctx, .regs = (void *)ctx[0], .sp = SYSTEM_CALL, .result = ctx[1]
	};

	s32 number = call_number(at.regs);

	/* A return from a signal handler has no call number. */
	at.id = number == NO_CALL ? ANY_CALL : target_call(target_ends, number, at.regs);
	if (number != NO_CALL && at.id >= target_count)
		return 0;
	return place_returned(&at, true);
}

TRACING(target_sys_enter, "tp_btf/sys_enter")
{
	struct call_place at = { .ctx = ctx, .regs = (void *)ctx[0], .sp = SYSTEM_CALL };

	at.id = target_call(target_entries, (s32)ctx[1], at.regs);
	return place_entered(&at, true);
}

#endif
