/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lookups of path components in the directory-entry cache:
 * lookup_fast(). The tool defines looked_up() before it uses ON_LOOKUPS.
 *
 * Contexts: the running task, outside of interrupts, preemptible.
 */
#ifndef CORETAP_LOOK_UP_BPF_H
#define CORETAP_LOOK_UP_BPF_H

#include "lib/core/filter.bpf.h"

#define ECHILD 10

/*
 * A lockless walk that must be repeated with locks: the same
 * name is then looked up twice, and the second result counts.
 */
inline_ bool walk_is_repeated(u64 found)
{
	return found == (u64)-ECHILD;
}

struct look_up {
	u64 walk; /* its struct nameidata */
};

TASK_SLOT(struct look_up);

/* The number of arguments differs between kernels, so the helper finds the result. */
#define ON_LOOKUPS                                                  \
	TRACING(on_lookup, "fexit/lookup_fast")                     \
	{                                                           \
		u64 found = 0;                                      \
                                                                    \
		bpf_get_func_ret(ctx, &found);                      \
		return looked_up((void *)ctx[0], found);            \
	}                                                           \
	SEC("kprobe/lookup_fast")                                   \
	int on_lookup_kprobe(struct pt_regs *ctx)                   \
	{                                                           \
		struct look_up *l = current_slot(true);             \
                                                                    \
		if (l)                                              \
			l->walk = PT_REGS_PARM1(ctx);               \
		return 0;                                           \
	}                                                           \
	SEC("kretprobe/lookup_fast")                                \
	int on_lookup_kretprobe(struct pt_regs *ctx)                \
	{                                                           \
		struct look_up *l = current_slot(false);            \
                                                                    \
		if (!l || !l->walk)                                 \
			return 0;                                   \
		return looked_up((void *)l->walk, PT_REGS_RC(ctx)); \
	}

#endif
