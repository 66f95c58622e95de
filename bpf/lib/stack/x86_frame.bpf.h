/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Steps of a walk that depend on the processor: x86-64.
 *
 * Contexts: as current_walk() allows; user memory is read without faults.
 */
#ifndef CORETAP_X86_FRAME_BPF_H
#define CORETAP_X86_FRAME_BPF_H

#include "lib/core/task.bpf.h"
#include "lib/stack/frame.bpf.h"

#define USER64_CS 0x33

/* The task's registers when last in user mode. */
inline_ enum walk_mode walk_registers(struct walk *w)
{
	struct pt_regs *regs;
	u32 cs;

	if (has_task_regs()) {
		regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
		w->ip = regs->ip;
		w->sp = regs->sp;
		w->bp = regs->bp;
		w->bx = regs->bx;
		w->di = regs->di;
		w->r10 = regs->r10;
		w->r13 = regs->r13;
		cs = (u16)regs->cs;
	} else {
		regs = saved_regs(current_task());
		w->ip = BPF_CORE_READ(regs, ip);
		w->sp = BPF_CORE_READ(regs, sp);
		w->bp = BPF_CORE_READ(regs, bp);
		w->bx = BPF_CORE_READ(regs, bx);
		w->di = BPF_CORE_READ(regs, di);
		w->r10 = BPF_CORE_READ(regs, r10);
		w->r13 = BPF_CORE_READ(regs, r13);
		cs = (u16)BPF_CORE_READ(regs, cs);
	}
	w->bx_at = 0;
	if (!w->ip || !cs)
		return WALK_NEVER;
	return cs == USER64_CS ? WALK_64_BIT : WALK_32_BIT;
}

/* The address that a word holds as a return address. */
inline_ u64 unwind_address(u64 word)
{
	return word;
}

/* May the frame be without memory, so that its CFA is the stack pointer? */
inline_ bool frame_may_be_empty(struct walk *w)
{
	return false;
}

/* The CFA of a rule relative to the stack pointer; 0: not known. */
inline_ u64 unwind_sp_cfa(struct walk *w, struct unwind_rule *rule)
{
	return w->sp + (s64)rule->offset;
}

/* The CFA for rules that few functions use; 0: not known. */
inline_ u64 unwind_rare_cfa(struct walk *w, struct unwind_rule *rule)
{
	u64 base;

	switch (rule->cfa) {
	case UNWIND_PLT:
		return w->sp + 8 + ((u32)(w->ip & 15) >= (u32)rule->more ? 8 : 0);
	case UNWIND_SP_DEREF:
	case UNWIND_BP_DEREF:
		if (rule->cfa == UNWIND_BP_DEREF && !unwind_bp(w))
			return 0;
		base = rule->cfa == UNWIND_SP_DEREF ? w->sp : w->bp;
		if (!unwind_read(w, base + (s64)rule->offset, &base))
			return 0;
		return base + (s64)rule->more;
	case UNWIND_BX:
		walk_cannot_repeat(w);
		base = w->bx;
		if (w->bx_at && !unwind_read(w, w->bx_at, &base))
			return 0;
		return base + (s64)rule->offset;
	case UNWIND_R10: /* not preserved over calls */
		walk_cannot_repeat(w);
		return w->stack.depth == 1 ? w->r10 + (s64)rule->offset : 0;
	}
	return 0;
}

/* Steps to the caller by a rule whose bp was noted; not 0: it was the last frame. */
inline_ int unwind_to_caller(struct walk *w, struct unwind_rule *rule, u64 cfa)
{
	if (rule->bx_slot)
		w->bx_at = rule->bx_slot == UNWIND_BX_LOST ? NOWHERE : cfa + (s64)rule->bx_slot * 8;
	if (!unwind_read(w, cfa - 8, &w->ip))
		return unwind_end(w, STACK_END_UNREADABLE);
	w->sp = cfa;
	w->exact = 0;
	/* Some thread entry points push a zero as return address. */
	return w->ip ? 0 : unwind_end(w, STACK_END_WHOLE);
}

/* Before a function's first instruction, and at its return, the return address is at rsp. */
inline_ int unwind_entry(struct walk *w)
{
	if (!unwind_read(w, w->sp, &w->ip))
		return unwind_end(w, STACK_END_UNREADABLE);
	w->sp += 8;
	w->exact = 0;
	return w->ip ? 0 : unwind_end(w, STACK_END_WHOLE);
}

/* The frame pointer was followed to here. */
inline_ void unwind_guessed(struct walk *w, u64 frame)
{
	w->sp = frame + 16;
}

/* Registers saved by the kernel: rsp, rip, rbp and rbx in the ucontext, relative to its rsp. */
inline_ int unwind_signal(struct walk *w)
{
	u64 context = w->sp;

	if (!unwind_read(w, context + 120, &w->bp) || !unwind_read(w, context + 128, &w->bx) ||
	    !unwind_read(w, context + 160, &w->sp) || !unwind_read(w, context + 168, &w->ip))
		return unwind_end(w, STACK_END_UNREADABLE);
	w->bp_at = 0;
	w->bx_at = 0;
	w->read.register_bp = 0;
	w->exact = 1;
	return w->ip ? 0 : unwind_end(w, STACK_END_WHOLE);
}

/* vfork keeps the return address in rdi: the child would overwrite it on the shared stack. */
inline_ int unwind_vfork(struct walk *w, struct unwind_rule *rule)
{
	if (w->stack.depth != 1) /* rdi is not preserved over calls */
		return unwind_end(w, STACK_END_OTHER_RULE);
	walk_cannot_repeat(w);
	w->sp += (s64)rule->offset;
	w->ip = w->di;
	w->exact = 0;
	return 0;
}

#endif
