/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs at entries and returns of the targets that are functions; the program that includes
 * this defines function_entered() and function_returned(). Returns come first, as they must
 * be attached first.
 *
 * Contexts: wherever the targets are; an interrupt may nest.
 */
#ifndef CORETAP_EACH_FUNCTION_BPF_H
#define CORETAP_EACH_FUNCTION_BPF_H

#include "lib/targets/target.bpf.h"

inline_ int function_entered(struct pt_regs *ctx, u64 id);
inline_ int function_returned(struct pt_regs *ctx, u64 id);

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

#endif
