/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kernel stacks in preemptible programs, those at functions: a program in another task
 * may use the scratch in the middle of this one. Such a stack is not stored: returns 0.
 *
 * Contexts: preemptible.
 */
#ifndef CORETAP_SHARED_SCRATCH_BPF_H
#define CORETAP_SHARED_SCRATCH_BPF_H

#include "lib/stack/cpu_walk.bpf.h"
#include "lib/stack/stack.bpf.h"

/* The address of the context of the program whose stack is in the scratch. */
CPU_SLOTS(scratch_user, u64);

inline_ bool scratch_is_of(void *ctx)
{
	volatile u64 *user = cpu_slot(&scratch_user);

	return user && *user == (u64)ctx;
}

/* Call before frames are written. */
inline_ bool scratch_take(void *ctx)
{
	volatile u64 *user = cpu_slot(&scratch_user);

	if (user)
		*user = (u64)ctx;
	return user;
}

/* Stores the stack in the scratch under this key. */
inline_ u64 scratch_store(void *ctx, struct stack *s, u64 id)
{
	if (!id || !scratch_is_of(ctx))
		return 0;
	if (!stack_store(s, id) || scratch_is_of(ctx))
		return id;
	bpf_map_delete_elem(&stacks, &id); /* this key may have another task's frames */
	return 0;
}

inline_ u64 preemptible_stack_of_kernel(void *ctx)
{
	struct stack *s = cpu_slot(&stack_scratch);
	u32 size = stack_depth * 8;

	if (!s || size > sizeof(s->ip) || !scratch_take(ctx))
		return 0;
	return scratch_store(ctx, s, kernel_stack_id(bpf_get_stack(ctx, s->ip, size, 0), 0));
}

#endif
