/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that are one expression, and definitions common to all kinds. */
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
	SEC("fentry/" #function)                                                          \
	int name(u64 *ctx)                                                                \
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

/* The sixth argument, which has no name in libbpf before 1.2. */
#ifdef __TARGET_ARCH_x86
#define PARM6(ctx) ((ctx)->r9)
#define ARGUMENT_AT(reg) __builtin_offsetof(struct pt_regs, reg)
#define ARGUMENT_REGISTERS(X) X(0, di) X(1, si) X(2, dx) X(3, cx) X(4, r8) X(5, r9)
#else
#define PARM6(ctx) (((struct user_pt_regs *)(ctx))->regs[5])
#define ARGUMENT_AT(reg) __builtin_offsetof(struct user_pt_regs, reg)
#define ARGUMENT_REGISTERS(X) \
	X(0, regs[0]) X(1, regs[1]) X(2, regs[2]) X(3, regs[3]) X(4, regs[4]) X(5, regs[5])
#endif

/* A program at a tracepoint; `result` is its return value, computed from `ctx`. */
#define ON_TRACEPOINT(name, tracepoint, result) \
	SEC("tp_btf/" #tracepoint)              \
	int name(u64 *ctx)                      \
	{                                       \
		return result;                  \
	}

/* on_NAME_begin and on_NAME_end at the two tracepoints of this name. */
#define PAIR(name, tracepoint, at_begin, at_end)                       \
	ON_TRACEPOINT(on_##name##_begin, tracepoint##_begin, at_begin) \
	ON_TRACEPOINT(on_##name##_end, tracepoint##_end, at_end)

/* The first six arguments of a function at its entry. Loads have fixed offsets:
 * verifiers reject the compiler's arithmetic on the context's address. */
inline_ void call_registers(struct pt_regs *ctx, u64 *to)
{
#define ARGUMENT(n, reg) \
	asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(to[n]) : "r"(ctx), "i"(ARGUMENT_AT(reg)));
	ARGUMENT_REGISTERS(ARGUMENT)
#undef ARGUMENT
}

#endif
