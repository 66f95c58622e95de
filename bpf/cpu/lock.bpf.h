/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Kernel locks: their callers, and the flags of contention_begin. */
#ifndef CORETAP_LOCK_BPF_H
#define CORETAP_LOCK_BPF_H

#include "cpu/lock_flags.h"
#include "lib/stack/shared_scratch.bpf.h"

/* Address ranges of locking code, from the loader (LockCode in coretap/symbols.hpp). */
const volatile struct code_range sched_code = {}, spin_code = {}, mmap_code = {};
OPT_OR(__u32, caller_frames, 1); /* kept of each stack */

#define LOCK_DEPTH 24 /* maximum number of frames of locking and tracing code */

inline_ bool in_lock_code(u64 ip)
{
	return ip - sched_code.begin < sched_code.end - sched_code.begin ||
	       ip - spin_code.begin < spin_code.end - spin_code.begin ||
	       ip - mmap_code.begin < mmap_code.end - mmap_code.begin;
}

#define BEHIND_LOCK_CODE 0
#define CALL_BYTES 32 /* a function's call of its trampoline ends before this offset */

/*
 * Index of the first frame after a function, in the stack of a program at it. The
 * frames are the program's, the trampoline's, and the function's own unless it jumps
 * to the trampoline: since 6.19 (402e44b31e9b) functions with fexit programs do.
 */
inline_ u32 behind_function(void *ctx, struct stack *s)
{
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_func_ip))
		return 3;
	return s->ip[2] - bpf_get_func_ip(ctx) < CALL_BYTES ? 3 : 2;
}

/*
 * For the stack in the scratch with this depth: keeps the frames after the
 * locking code; returns their key. `first` is the frame after a function of that
 * code, or BEHIND_LOCK_CODE. A separate function, as the verifier needs it.
 */
__noinline u64 caller_key(u32 depth, u32 first)
{
	struct stack *s = cpu_slot(&stack_scratch);
	bool seen = false;
	u32 kept = 0;
	u64 hash = 0;

	if (!s)
		return 0;
	first &= 3;
	if (first != BEHIND_LOCK_CODE && in_lock_code(s->ip[first]))
		first++; /* a slow path, to which the caller may have jumped */
	for (u32 i = 0; first == BEHIND_LOCK_CODE && i < LOCK_DEPTH && i < depth; i++) {
		bool in = in_lock_code(s->ip[i]);

		if (seen && !in)
			first = i;
		seen |= in;
	}
	for (u32 i = 0; i < STACK_DEPTH; i++) {
		u32 from = first + i;

		asm volatile("" : "+r"(from)); /* the check must apply to the index register */
		if (i >= caller_frames || from >= depth || from >= STACK_DEPTH)
			break;
		s->ip[i] = s->ip[from];
		hash = walk_hash(hash, s->ip[i]);
		kept++;
	}
	s->depth = kept;
	s->end = STACK_END_OPEN;
	s->guessed = 0;
	s->image = 0;
	return stack_key(s, hash);
}

/* The stack of the lock's caller, or of the caller of the traced function; 0: not known. */
inline_ u64 caller_stack(void *ctx, bool of_function)
{
	struct stack *s = cpu_slot(&stack_scratch);
	u32 size = (LOCK_DEPTH + caller_frames) * 8;
	long bytes;

	if (!s || size > sizeof(s->ip) || !scratch_take(ctx))
		return 0;
	bytes = bpf_get_stack(ctx, s->ip, size, 0);
	if (bytes <= 0)
		return 0;
	return scratch_store(ctx, s,
			     caller_key((u32)bytes / 8,
					of_function ? behind_function(ctx, s) : BEHIND_LOCK_CODE));
}

#endif
