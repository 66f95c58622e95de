/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The walk of a user stack; the loader's part of it is src/core/walker.hpp. */
#ifndef CORETAP_WALK_BPF_H
#define CORETAP_WALK_BPF_H

#include "lib/task.bpf.h"

/* For programs that nothing of their kind can interrupt, such as sched_switch. */
CPU_SLOTS(stack_scratch, struct stack);

/*
 * Programs on user functions can be preempted since 6.0 (8c7dcb84e3b7), by their like in another
 * task too: those define STACK_OF_TASK before they include this.
 */
#ifdef STACK_OF_TASK
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct stack);
} task_stacks SEC(".maps");

inline_ struct stack *user_scratch(void)
{
	if (has_task_storage())
		return bpf_task_storage_get(&task_stacks, bpf_get_current_task_btf(), 0,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);
	return cpu_slot(&stack_scratch);
}
#else
#define user_scratch() ((struct stack *)cpu_slot(&stack_scratch))
#endif

#define USER64_CS 0x33

/*
 * User stack of the running task by frame pointers, into the scratch; bytes, or -1 where only the
 * kernel's own walker (bpf_get_stack) can. That one reads the frame behind the last one too, and
 * where a frame pointer is none that is a page fault of half a microsecond. A function of its own:
 * the verifier walks its loop once, not once for each way that leads here.
 */
__noinline long walk_user(u32 most)
{
#ifdef __TARGET_ARCH_x86
	struct stack *s = user_scratch();
	struct frame {
		u64 next, return_address;
	} frame;
	struct pt_regs *regs;
	u64 fp;

	/* 5.15 brought the helper (dd6e10fbd9fb). */
	if (!s || !bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return -1;
	regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	if ((u16)regs->cs != USER64_CS)
		return -1;
	if (!regs->ip)
		return 0; /* a kernel thread with a borrowed address space */
	s->ip[0] = regs->ip;
	s->depth = 1;
	fp = regs->bp;
	for (u32 i = 1; i < STACK_DEPTH && i < most; i++) {
		if (fp < 4096 || fp & 7 || fp >> 47 ||
		    bpf_probe_read_user(&frame, sizeof(frame), (void *)fp) || !frame.return_address)
			break;
		s->ip[i] = frame.return_address;
		s->depth = i + 1;
		if (frame.next <= fp) /* callers' frames lie above; a loop would never end */
			break;
		fp = frame.next;
	}
	return (long)*(volatile u32 *)&s->depth * 8;
#else
	return -1;
#endif
}

#endif
