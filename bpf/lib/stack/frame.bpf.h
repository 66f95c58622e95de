/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registers of the walk's frame that were saved in memory, and the end of a walk.
 *
 * Contexts: as current_walk() allows; user memory is read without faults.
 */
#ifndef CORETAP_FRAME_BPF_H
#define CORETAP_FRAME_BPF_H

#include "lib/stack/user_words.bpf.h"

#define NOWHERE 1 /* address from which nothing is read */

/* Mode of the registers that walk_registers() has found. */
enum walk_mode {
	WALK_NEVER, /* the task was never in user mode */
	WALK_64_BIT,
	WALK_32_BIT,
};

inline_ int unwind_end(struct walk *w, enum stack_end end)
{
	w->stack.end = end;
	return 1;
}

/* Reads the frame's frame pointer into w->bp, if the callee has saved it: few rules need it. */
inline_ bool unwind_bp(struct walk *w)
{
	u64 at = w->bp_at;

	w->read.by_bp |= w->read.register_bp;
	if (!at)
		return true;
	w->bp_at = 0;
	return unwind_read(w, at, &w->bp);
}

inline_ void unwind_bp_saved(struct walk *w, u64 at)
{
	w->bp_at = at;
	w->read.register_bp = 0;
}

#endif
