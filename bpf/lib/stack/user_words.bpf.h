/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Words of the user stack that a walk reads: in blocks, and recorded on request.
 *
 * Contexts: as current_walk() allows; user memory is read without faults.
 */
#ifndef CORETAP_USER_WORDS_BPF_H
#define CORETAP_USER_WORDS_BPF_H

#include "lib/stack/walk_state.bpf.h"

/* The walk depends on something that its words do not show. */
inline_ void walk_cannot_repeat(struct walk *w)
{
	w->read.number = WALK_WORDS + 1;
}

inline_ void walk_record(struct walk *w, u64 address, u64 word)
{
	u64 at = (address - w->read.sp) / 8;
	u32 n = w->read.number;

	if (n >= WALK_WORDS || at > 0xffff) {
		walk_cannot_repeat(w);
		return;
	}
	barrier_var(n);
	w->read.at[n & (WALK_WORDS - 1)] = (u16)at;
	w->read.number = n + 1;
	w->read.hash = walk_hash(w->read.hash, word);
}

/* From the task's registers on, which are in the walk. */
inline_ void walk_records_begin(struct walk *w)
{
	w->read.number = 0;
	w->read.by_bp = 0;
	w->read.register_bp = 1;
	w->read.ip = w->ip;
	w->read.sp = w->sp;
	w->read.bp = w->bp;
	w->read.link = w->link;
	w->read.hash = 0;
}

/* Reads a block of the stack, starting with this word. */
__noinline int unwind_fetch(u64 address)
{
	struct walk *w = current_walk();
	u32 to_page_end = 4096 - (u32)(address & 4095);

	if (!w)
		return 0;
	w->block_at = address;
	w->block_bytes = 0;
	if (!bpf_probe_read_user(w->block, WALK_BLOCK, (void *)address)) {
		w->block_bytes = WALK_BLOCK;
	} else if (to_page_end < WALK_BLOCK) { /* the end of the stack */
		to_page_end &= WALK_BLOCK - 1;
		if (!bpf_probe_read_user(w->block, to_page_end, (void *)address))
			w->block_bytes = to_page_end;
	}
	return w->block_bytes;
}

inline_ bool unwind_read_block(struct walk *w, u64 address, u64 *word)
{
	u64 at = address - w->block_at;

	if (address & 7)
		return false;
	if (at >= w->block_bytes) {
		if (!unwind_fetch(address))
			return false;
		at = 0;
	}
	at = at / 8;
	barrier_var(at);
	*word = w->block[at & (WALK_BLOCK / 8 - 1)];
	return true;
}

inline_ bool unwind_read(struct walk *w, u64 address, u64 *word)
{
	if (!unwind_read_block(w, address, word)) {
		walk_cannot_repeat(w);
		return false;
	}
	if (w->read.recorded)
		walk_record(w, address, *word);
	return true;
}

#endif
