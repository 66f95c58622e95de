/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registers of functions: arm64.
 *
 * Contexts: all.
 */
#ifndef CORETAP_ARCH_ARM64_REGISTERS_BPF_H
#define CORETAP_ARCH_ARM64_REGISTERS_BPF_H

#define FUNCTION_ARGUMENTS(OF)        \
	OF(0, user_pt_regs, regs[0]); \
	OF(1, user_pt_regs, regs[1]); \
	OF(2, user_pt_regs, regs[2]); \
	OF(3, user_pt_regs, regs[3]); \
	OF(4, user_pt_regs, regs[4]); \
	OF(5, user_pt_regs, regs[5]);

#define PARM6(ctx) (((struct user_pt_regs *)(ctx))->regs[5])
#define SP_OF(ctx) PT_REGS_SP(ctx)
#define LINK_OF(ctx) PT_REGS_RET(ctx)
#define RETURN_ADDRESS_BYTES 0
#define OPEN_DIRECT 0200000

#endif
