/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs on targets of the command line: functions, tracepoints, USDT probes, system calls.
 *
 * Contexts: wherever the targets are.
 */
#ifndef CORETAP_TARGET_BPF_H
#define CORETAP_TARGET_BPF_H

#include "lib/targets/call.bpf.h"
#include "lib/syscall/syscall.bpf.h"

/* Number of targets; target numbers are below this. */
OPT(__u64, target_count);
/*
 * Does each target of this kind have a copy of the program that contains its number? Attach
 * cookies came with 5.15 (82e6b1eee6a8), for raw tracepoints with 6.10 (68ca5d4eebb8).
 */
const volatile __u8 target_copied[TARGET_KINDS] = {};
/* By kind: the number that all targets of it share, plus one; 0: they have several. */
const volatile __u32 target_only[TARGET_KINDS] = {};

/* The target number of each system call's entry and exit, plus one; 0: not traced. */
const volatile __u32 target_entries[CALLS_COMPAT] = {};
const volatile __u32 target_ends[CALLS_COMPAT] = {};

/* Per-CPU slots of one value for each target: name_of(id); the loader sets the size. */
#define TARGET_SLOTS(name, value_type)                                 \
	struct {                                                       \
		__uint(type, BPF_MAP_TYPE_ARRAY);                      \
		__uint(map_flags, BPF_F_MMAPABLE);                     \
		__uint(max_entries, 1);                                \
		__uint(key_size, 4);                                   \
		__uint(value_size, sizeof(value_type));                \
	} name##_cpus SEC(".maps");                                    \
	inline_ value_type *name##_of(u64 id)                          \
	{                                                              \
		value_type *slots = cpu_slot(&name##_cpus);            \
                                                                       \
		barrier_var(id);                                       \
		return slots && id < target_count ? &slots[id] : NULL; \
	}

inline_ u64 target_id(void *ctx, enum target_kind kind)
{
	u64 id;

	if (target_only[kind])
		return target_only[kind] - 1;
	if (!target_copied[kind])
		return bpf_get_attach_cookie(ctx);
	asm volatile("%0 = %1" : "=r"(id) : "i"(TARGET_MARK));
	return id;
}

/* Tracepoints of the category syscalls are handled here, by call.
 * 32-bit callers are left out, as in the kernel's own tracepoints. */
inline_ u64 target_call(const volatile __u32 *ids, s32 number, struct pt_regs *regs)
{
	u32 index = number;
	u64 id;

	index &= ~CALL_X32;
	if (index >= CALLS_COMPAT)
		return -1;
	barrier_var(index);
	id = ids[index & (CALLS_COMPAT - 1)];
	return id && !call_is_compat(regs) ? id - 1 : -1; /* checked last, as it costs the most */
}

#endif
