/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths passed to system calls, and the directories that they are relative to.
 *
 * Contexts: the running task, outside of interrupts. Counts TRUNCATED.
 */
#ifndef CORETAP_GIVEN_PATH_BPF_H
#define CORETAP_GIVEN_PATH_BPF_H

#include "lib/paths/early_path.bpf.h"
#include "lib/paths/given_path.h"
#include "lib/paths/path.bpf.h"

OPT(bool, full_path);

#define GIVEN_ROOM (GIVEN_MOST + 9 + PATH_ROOM) /* for each path of a record */

/* The texts of a record, one after the other; in a map, as `walked` must be. */
struct given_texts {
	struct walked walked;
	volatile u32 used; /* bytes used of the room for texts */
	u32 pad;
};

/*
 * Reads a path, when its call ends, to the room after the record's texts (at most those of
 * `others` paths); the first text is at `at` in the record. Older verifiers (5.10) lose the bounds
 * of spilled scalars but keep those of pointers, which are therefore computed before calls.
 */
inline_ void read_given_path(struct given_path *p, struct given_texts *t, char *room, u32 at,
			     const u32 others, u64 name, s32 dfd, s64 result)
{
	u32 used = t->used, bytes;
	bool cut = false;
	char *to;
	s64 n;

	p->what = 0;
	p->text.bytes = p->base.bytes = 0;
	if (used > others * GIVEN_ROOM)
		return;
	to = room + used;
	barrier_var(to);
	n = text_user(to, GIVEN_MOST, (void *)name, &cut);
	if (n < 0) {
		/* If the kernel could not read it either (EFAULT), the error is the program's. */
		if (result != -EFAULT)
			count(LEDGER_TRUNCATED);
		return;
	}
	bytes = n & GIVEN_MOST;
	p->what = cut ? GIVEN_PATH_TEXT | GIVEN_PATH_CUT : GIVEN_PATH_TEXT;
	p->text.at = at + used;
	p->text.bytes = bytes;
	t->used = used + bytes;
	if (full_path && *to != '/') {
		used = t->used;
		if (used > others * GIVEN_ROOM + GIVEN_MOST)
			return;
		p->base.at = at + used;
		to = room + used;
		barrier_var(to);
		path_walk(&t->walked, to, base_of(dfd), &current_fs()->root);
		bytes = t->walked.bytes;
		if (!t->walked.nameless && bytes <= PATH_ROOM) {
			p->what |= GIVEN_PATH_BASE;
			if (t->walked.cut)
				p->what |= GIVEN_PATH_BASE_CUT;
			p->base.bytes = bytes;
			t->used += bytes;
		}
	}
	if (p->what & (GIVEN_PATH_CUT | GIVEN_PATH_BASE_CUT))
		count(LEDGER_TRUNCATED);
}

/* Size of the record with its texts, for `paths` paths. */
inline_ u64 given_size(struct given_texts *t, u32 at, const u32 paths)
{
	u64 used = t->used;

	if (used > paths * GIVEN_ROOM)
		used = 0;
	barrier_var(used);
	return at + used;
}

#endif
