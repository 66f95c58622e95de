/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Steps of a walk that depend on the processor: arm64. A call leaves its return address in
 * the link register; functions that call others save it, mostly beside the frame pointer
 * (AAPCS64, "The Frame Pointer").
 *
 * Contexts: as current_walk() allows; user memory is read without faults.
 */
#ifndef CORETAP_ARM64_FRAME_BPF_H
#define CORETAP_ARM64_FRAME_BPF_H

#include "lib/core/task.bpf.h"
#include "lib/stack/frame.bpf.h"

#define MODE_32_BIT 0x10 /* in pstate: PSR_MODE32_BIT */
#define FRAME_POINTER 29
#define LINK 30

/* The task's registers when last in user mode. */
inline_ enum walk_mode walk_registers(struct walk *w)
{
	struct pt_regs *regs;
	u64 pstate;

	if (has_task_regs()) {
		regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
		w->ip = regs->pc;
		w->sp = regs->sp;
		w->bp = regs->regs[FRAME_POINTER];
		w->link = regs->regs[LINK];
		pstate = regs->pstate;
	} else {
		regs = saved_regs(current_task());
		w->ip = BPF_CORE_READ(regs, pc);
		w->sp = BPF_CORE_READ(regs, sp);
		w->bp = BPF_CORE_READ(regs, regs[FRAME_POINTER]);
		w->link = BPF_CORE_READ(regs, regs[LINK]);
		pstate = BPF_CORE_READ(regs, pstate);
	}
	w->sp_least = 0;
	if (!w->ip)
		return WALK_NEVER;
	return pstate & MODE_32_BIT ? WALK_32_BIT : WALK_64_BIT;
}

/*
 * The address that a word holds as a return address. Its other bits may be a pointer
 * authentication code. Programs have addresses of more than 48 bits only if they ask for them.
 */
inline_ u64 unwind_address(u64 word)
{
	return word & ((1ULL << 48) - 1);
}

/* May the frame be without memory, so that its CFA is the stack pointer? */
inline_ bool frame_may_be_empty(struct walk *w)
{
	return w->exact;
}

/*
 * The CFA of a rule relative to the stack pointer; 0: not known. After a guess the frame pointer
 * leads to it: it has the address of the function's frame record, x29 and x30. For a function
 * without one, the callee's record is taken to be the first thing in its frame, as just-in-time
 * compilers place it.
 */
inline_ u64 unwind_sp_cfa(struct walk *w, struct unwind_rule *rule)
{
	if (!w->sp_least || rule->bp != UNWIND_BP_AT_CFA || rule->ra_slot != rule->bp_slot + 1)
		return w->sp + (s64)rule->offset;
	return unwind_bp(w) ? w->bp - (s64)rule->bp_slot * 8 : 0;
}

/* The other kinds of rules are for x86-64. */
inline_ u64 unwind_rare_cfa(struct walk *w, struct unwind_rule *rule)
{
	return 0;
}

/* Steps to the caller by a rule whose bp was noted; not 0: it was the last frame. */
inline_ int unwind_to_caller(struct walk *w, struct unwind_rule *rule, u64 cfa)
{
	u64 word = w->link;

	if (!rule->ra_slot && !w->exact) /* a call has overwritten it */
		return unwind_end(w, STACK_END_OTHER_RULE);
	if (rule->ra_slot && !unwind_read(w, cfa + (s64)rule->ra_slot * 8, &word))
		return unwind_end(w, STACK_END_UNREADABLE);
	w->ip = unwind_address(word);
	w->sp = cfa;
	w->sp_least = 0;
	w->exact = 0;
	return w->ip ? 0 : unwind_end(w, STACK_END_WHOLE);
}

/* Before a function's first instruction, and at its return, the return address is in x30. */
inline_ int unwind_entry(struct walk *w)
{
	w->ip = unwind_address(w->link);
	w->exact = 0;
	return w->ip ? 0 : unwind_end(w, STACK_END_WHOLE);
}

/* The frame pointer was followed to here: a frame record is anywhere in its frame. */
inline_ void unwind_guessed(struct walk *w, u64 frame)
{
	w->sp = frame + 16;
	w->sp_least = 1;
}

/* Offsets in struct rt_sigframe, to which sp points: info, uc.uc_mcontext.regs. */
#define SIGNAL_REGISTERS (128 + 176 + 8)
#define SIGNAL_REGISTER(n) (SIGNAL_REGISTERS + (n)*8)

/* Registers saved by the kernel: x29, x30, sp and pc. */
inline_ int unwind_signal(struct walk *w)
{
	u64 frame = w->sp;

	if (w->sp_least)
		return unwind_end(w, STACK_END_OTHER_RULE);
	if (!unwind_read(w, frame + SIGNAL_REGISTER(FRAME_POINTER), &w->bp) ||
	    !unwind_read(w, frame + SIGNAL_REGISTER(LINK), &w->link) ||
	    !unwind_read(w, frame + SIGNAL_REGISTER(31), &w->sp) ||
	    !unwind_read(w, frame + SIGNAL_REGISTER(32), &w->ip))
		return unwind_end(w, STACK_END_UNREADABLE);
	w->bp_at = 0;
	w->read.register_bp = 0;
	w->exact = 1;
	return w->ip ? 0 : unwind_end(w, STACK_END_WHOLE);
}

/* There is no such rule. */
inline_ int unwind_vfork(struct walk *w, struct unwind_rule *rule)
{
	return unwind_end(w, STACK_END_OTHER_RULE);
}

#endif
