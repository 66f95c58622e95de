/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Locks of the kernel: what called one, and what the flags of contention_begin mean. */
#ifndef CORETAP_LOCK_BPF_H
#define CORETAP_LOCK_BPF_H

#include "lib/stack.bpf.h"

/* The kernel's code of locks, from the loader (LockCode in coretap/symbols.hpp). */
const volatile struct code_range sched_code = {}, spin_code = {}, mmap_code = {};
OPT_OR(__u32, caller_frames, 1); /* kept of each stack */

#define LOCK_DEPTH 24 /* frames that the code of locks and of tracing may have */

/* linux/lock.h, LCB_F_ */
enum lock_flags {
	LOCK_SPINS = 1,
	LOCK_READ = 2,
	LOCK_WRITE = 4,
	LOCK_RT = 8,
	LOCK_PERCPU = 16,
	LOCK_MUTEX = 32,
};

/* A spinlock has no flags; a mutex may spin before it sleeps. */
inline_ bool lock_spins(u32 flags)
{
	return !flags || (flags & (LOCK_SPINS | LOCK_MUTEX)) == LOCK_SPINS;
}

inline_ bool in_lock_code(u64 ip)
{
	return ip - sched_code.begin < sched_code.end - sched_code.begin ||
	       ip - spin_code.begin < spin_code.end - spin_code.begin ||
	       ip - mmap_code.begin < mmap_code.end - mmap_code.begin;
}

/*
 * The stack in the scratch, with this depth: stores its first frames behind the code of locks;
 * returns their key. A function of its own, for the verifier's sake.
 */
__noinline u64 caller_key(u32 depth)
{
	struct stack *s = cpu_slot(&stack_scratch);
	u32 first = 0, kept = 0;
	bool seen = false;
	u64 hash = 0, id;

	if (!s)
		return 0;
	for (u32 i = 0; i < LOCK_DEPTH && i < depth; i++) {
		bool in = in_lock_code(s->ip[i]);

		if (seen && !in) {
			first = i;
			break;
		}
		seen |= in;
	}
	for (u32 i = 0; i < STACK_DEPTH; i++) {
		u32 from = first + i;

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
	id = stack_key(s, hash);
	stack_store(s, id);
	return id;
}

inline_ u64 caller_stack(void *ctx)
{
	struct stack *s = cpu_slot(&stack_scratch);
	u32 size = (LOCK_DEPTH + caller_frames) * 8;
	long bytes;

	if (!s || size > sizeof(s->ip))
		return 0;
	bytes = bpf_get_stack(ctx, s->ip, size, 0);
	return bytes > 0 ? caller_key((u32)bytes / 8) : 0;
}

#endif
