/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registers of functions: x86-64.
 *
 * Contexts: all.
 */
#ifndef CORETAP_ARCH_X86_REGISTERS_BPF_H
#define CORETAP_ARCH_X86_REGISTERS_BPF_H

#define FUNCTION_ARGUMENTS(OF) \
	OF(0, pt_regs, di);    \
	OF(1, pt_regs, si);    \
	OF(2, pt_regs, dx);    \
	OF(3, pt_regs, cx);    \
	OF(4, pt_regs, r8);    \
	OF(5, pt_regs, r9);

#define PARM6(ctx) ((ctx)->r9)
#define SP_OF(ctx) PT_REGS_SP(ctx)
#define RETURN_ADDRESS_BYTES 8
#define OPEN_DIRECT 040000

#endif
