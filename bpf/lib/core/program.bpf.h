/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that are one expression, and definitions common to all kinds.
 *
 * Contexts: all, NMIs included.
 */
#ifndef CORETAP_PROGRAM_BPF_H
#define CORETAP_PROGRAM_BPF_H

#include "lib/core/coretap.bpf.h"

/*
 * A program at the entry of a kernel function, by fentry and, as NAME_kprobe, by a kprobe.
 * `result` is its return value, computed from the function's arguments arg[0] to arg[4].
 */
#define FUNC_ENTRY(name, function, result)                                                \
	inline_ int name##_by(const u64 *arg)                                             \
	{                                                                                 \
		return result;                                                            \
	}                                                                                 \
	TRACING(name, "fentry/" #function)                                                \
	{                                                                                 \
		return name##_by(ctx);                                                    \
	}                                                                                 \
	SEC("kprobe/" #function)                                                          \
	int name##_kprobe(struct pt_regs *ctx)                                            \
	{                                                                                 \
		u64 arg[] = { PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx), \
			      PT_REGS_PARM4(ctx), PT_REGS_PARM5(ctx) };                   \
                                                                                          \
		return name##_by(arg);                                                    \
	}

/* A TRACING program; `result` is its return value. */
#define PROGRAM(name, section, result) \
	TRACING(name, section)         \
	{                              \
		return result;         \
	}

/* on_NAME_begin and on_NAME_end at the two tracepoints of this name. */
#define PAIR(name, tracepoint, at_begin, at_end)                             \
	PROGRAM(on_##name##_begin, "tp_btf/" #tracepoint "_begin", at_begin) \
	PROGRAM(on_##name##_end, "tp_btf/" #tracepoint "_end", at_end)

/* The first six arguments of a function at its entry. Loads have fixed offsets:
 * verifiers reject the compiler's arithmetic on the context's address. */
inline_ void call_registers(struct pt_regs *ctx, u64 *to)
{
#define ARGUMENT(n, type, reg)                \
	asm volatile("%0 = *(u64 *)(%1 + %2)" \
		     : "=r"(to[n])            \
		     : "r"(ctx), "i"(__builtin_offsetof(struct type, reg)))
	FUNCTION_ARGUMENTS(ARGUMENT)
#undef ARGUMENT
}

#endif
