/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that are one expression, and what all kinds of them need to know. */
#ifndef CORETAP_PROGRAM_BPF_H
#define CORETAP_PROGRAM_BPF_H

#include "lib/coretap.bpf.h"

/*
 * A program at the entry of a function of the kernel, by fentry and, as NAME_kprobe, by a kprobe:
 * what it returns, by the function's arguments arg[0] to arg[4].
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

/* The sixth, which has no name in libbpf before 1.2. */
#ifdef __TARGET_ARCH_x86
#define PARM6(ctx) ((ctx)->r9)
#else
#define PARM6(ctx) (((struct user_pt_regs *)(ctx))->regs[5])
#endif

/* A program at a tracepoint, and what it returns, by `ctx`. */
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

#endif
