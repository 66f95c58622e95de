/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The walk of a user stack; the loader's part is in src/unwind/walker.hpp.
 *
 * Contexts: as current_walk() allows, NMIs included.
 */
#ifndef CORETAP_WALK_BPF_H
#define CORETAP_WALK_BPF_H

#include "lib/stack/hotspot.bpf.h"
#include "lib/stack/unwind.bpf.h"
#include "lib/stack/walk_state.bpf.h"

/*
 * Sets program and mm; false: no user stack. A kernel thread may have borrowed an
 * address space. In execve the registers are the caller's, and so is its address
 * space at first, if it was seen before: the new one has no stack until execve ends.
 */
inline_ bool walk_owner(struct walk *w)
{
	struct task_struct *t;
	bool executes;
	u32 flags;

	if (has_task_regs()) {
		t = bpf_get_current_task_btf();
		w->program = program_of(t->tgid, t->self_exec_id);
		w->mm = (u64)t->mm;
		flags = t->flags;
		executes = BPF_CORE_READ_BITFIELD(t, in_execve);
	} else {
		t = current_task();
		w->program = program_of(bpf_get_current_pid_tgid() >> 32,
					BPF_CORE_READ(t, self_exec_id));
		w->mm = (u64)BPF_CORE_READ(t, mm);
		flags = BPF_CORE_READ(t, flags);
		executes = BPF_CORE_READ_BITFIELD_PROBED(t, in_execve);
	}
	return !(flags & PF_KTHREAD) && (!executes || is_known_mm(w));
}

/*
 * Records the frame and steps to its caller's by the saved frame pointer only; not 0:
 * it was the last one. The kernel's walker also reads the frame after the last one,
 * which is a page fault of half a microsecond if the register is not a frame pointer.
 */
inline_ int walk_frame_pointer(struct walk *w)
{
	u64 fp, next, ip;

	if (w->stack.depth >= stack_user_depth) {
		w->stack.end = STACK_END_DEPTH;
		return 1;
	}
	walk_found(w, w->ip);
	fp = w->bp;
	w->read.by_bp = 1;
	if (fp < 4096 || fp >> USER_BITS || !unwind_read(w, fp, &next) ||
	    !unwind_read(w, fp + 8, &ip))
		return 1;
	ip = unwind_address(ip);
	if (!ip || ip >> USER_BITS)
		return 1;
	w->ip = ip;
	w->bp = next > fp ? next : 0; /* callers' frames are at higher addresses */
	return 0;
}

__noinline int walk_frame_pointers(void)
{
	struct walk *w = current_walk();

	return !w || walk_frame_pointer(w) || walk_frame_pointer(w);
}

/*
 * Stores the user stack of the running task in current_walk(): returns the number of
 * frames, or -1 if only the kernel's walker (bpf_get_stack) can do it. A separate
 * function: the verifier checks its loop once, not once for each path to it.
 */
__noinline long walk_user(void)
{
	struct walk *w = current_walk();
	enum walk_mode mode;
	int ended;

	if (!w || !walk_owner(w))
		return 0;
	mode = walk_registers(w);
	if (mode == WALK_NEVER)
		return 0;
	if (mode == WALK_32_BIT) {
		walk_cannot_repeat(w); /* its words are an earlier walk's */
		return -1;
	}
	w->stack.depth = 0;
	w->stack.end = STACK_END_OPEN;
	w->stack.guessed = 0;
	w->stack.image = stack_image(w->program, 1);
	w->hash = 0;
	w->bp_at = 0;
	walk_records_begin(w);
	w->addresses = 0;
	w->unknown_map = 0;
	if (walk_leaf) {
		walk_found(w, w->ip);
		w->stack.end = STACK_END_LEAF;
	} else if (!w->mm) {
		walk_found(w, w->ip);
		w->stack.end = STACK_END_EXITING;
	} else {
		w->block_bytes = 0;
		if (unwind_tables)
			unwind_begin(w);
		if (unwind_tables && runtimes && w->hotspot)
			hotspot_begin();
		/* More than frames: a step may have to be repeated, and ends steps of its call. */
		for (u32 i = 0; i < STACK_MOST / WALK_STEPS + 2; i++) {
			ended = unwind_tables ? unwind_steps() : walk_frame_pointers();
			if (unwind_tables && runtimes && ended == UNWIND_HOTSPOT)
				ended = hotspot_steps();
			/* Until 5.15 no jump may lead back to behind a call. */
			barrier_var(ended);
			if (!ended)
				continue;
			if (!unwind_tables || ended != UNWIND_RUNTIME)
				break;
			runtime_begin();
		}
		if (unwind_tables && runtimes && w->runtime.begun)
			runtime_rest();
		if (unwind_tables && w->not_ready)
			w->stack.end = STACK_END_NOT_READY;
	}
	if (!w->addresses) /* valid in all processes */
		w->stack.image = 0;
	return w->stack.depth;
}

#endif
