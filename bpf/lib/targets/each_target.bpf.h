/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs at all kinds of targets; the tool defines at_target(). Those
 * of user programs use the task's own stack (lib/targets/call.bpf.h).
 *
 * Contexts: wherever the targets are.
 */
#ifndef CORETAP_EACH_TARGET_BPF_H
#define CORETAP_EACH_TARGET_BPF_H

#include "lib/targets/target.bpf.h"
#include "lib/core/program.bpf.h"

inline_ int at_target(void *ctx, u64 id, bool user);

SEC("target/kernel")
int target_kernel(struct pt_regs *ctx)
{
	return at_target(ctx, target_id(ctx, TARGET_KERNEL), false);
}

SEC("target/kernel.return")
int target_kernel_return(struct pt_regs *ctx)
{
	return at_target(ctx, target_id(ctx, TARGET_KERNEL), false);
}

inline_ int target_in_user(struct pt_regs *ctx)
{
	return at_target(ctx, target_id(ctx, TARGET_USER), true);
}

ON_USER_FUNCTION("target/user", target_user, target_in_user(ctx))
ON_USER_FUNCTION("target/user.return", target_user_return, target_in_user(ctx))
ON_USER_FUNCTION("target/usdt", target_usdt, target_in_user(ctx))

TRACING(target_tracepoint, "target/tracepoint")
{
	return at_target(ctx, target_id(ctx, TARGET_TRACEPOINT), false);
}

SEC("target/event")
int target_event(void *ctx)
{
	return at_target(ctx, target_id(ctx, TARGET_EVENT), false);
}

PROGRAM(target_sys_enter, "tp_btf/sys_enter",
	at_target(ctx, target_call(target_entries, (s32)ctx[1], (void *)ctx[0]), false))

TRACING(target_sys_exit, "tp_btf/sys_exit")
{
	struct pt_regs *regs = (void *)ctx[0];

	return at_target(ctx, target_call(target_ends, call_number(regs), regs), false);
}

#endif
