/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registers of the architecture at the entry of functions: FUNCTION_ARGUMENTS(OF) has
 * OF(index, type of the context, member) for six arguments, and the context's SP_OF() and
 * PARM6() (libbpf before 1.2 has no name for it); RETURN_ADDRESS_BYTES: of the return address that
 * the call pushed, 0: LINK_OF() has it. OPEN_DIRECT: O_DIRECT.
 *
 * Contexts: all.
 */
#ifndef CORETAP_ARCH_REGISTERS_BPF_H
#define CORETAP_ARCH_REGISTERS_BPF_H

#if defined(__TARGET_ARCH_x86)
#include "lib/arch/x86_registers.bpf.h"
#elif defined(__TARGET_ARCH_arm64)
#include "lib/arch/arm64_registers.bpf.h"
#else
#error "registers of this architecture are missing"
#endif

#endif
