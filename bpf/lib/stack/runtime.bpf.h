/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Code shared by the walks of all interpreters and runtimes, each of which has a separate header:
 * numbers of code objects, and segments of frames that are put at their places among native ones.
 *
 * Contexts: as current_walk() allows; user memory is read without faults.
 */
#ifndef CORETAP_RUNTIME_BPF_H
#define CORETAP_RUNTIME_BPF_H

#include "lib/core/text.bpf.h"
#include "lib/stack/user_words.bpf.h"

OPT(bool, runtimes); /* frames of interpreters are wanted, too */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNTIME_FILES);
	__type(key, u32);
	__type(value, struct runtime_file);
} runtime_files SEC(".maps");

/* Code objects whose names were sent, by number. */
MAP(LRU_HASH, runtime_codes, 16384, u64, u64);

inline_ bool runtime_read(u64 address, u64 *word)
{
	return !bpf_probe_read_user(word, sizeof(*word), (void *)address);
}

#ifdef __TARGET_ARCH_x86
struct thread_struct___x86 {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

struct task_struct___x86 {
	struct thread_struct___x86 thread;
} __attribute__((preserve_access_index));
#endif

/* pthread_self() of the running task; 0: not known. */
inline_ u64 thread_pointer(void)
{
#ifdef __TARGET_ARCH_x86
	return BPF_CORE_READ((struct task_struct___x86 *)current_task(), thread.fsbase);
#else
	return 0;
#endif
}

/* A word of the frame that was read last, in the block. */
inline_ u64 runtime_of_block(struct runtime_walk *r, u32 offset)
{
	u32 i = (u32)r->frame + offset / 8;

	barrier_var(i);
	return i < (RUNTIME_BLOCK + RUNTIME_FRAME) / 8 ? r->block[i] : 0;
}

/* Of the code object that was read last. */
inline_ u64 runtime_of_code(struct runtime_walk *r, u32 offset)
{
	u32 i = offset / 8;

	barrier_var(i);
	return r->code[i & (RUNTIME_CODE_WORDS - 1)];
}

inline_ u32 runtime_half_of_code(struct runtime_walk *r, u32 offset)
{
	return (u32)(runtime_of_code(r, offset) >> (offset & 4) * 8);
}

inline_ u64 runtime_word(u64 number, u64 place)
{
	return STACK_RUNTIME | number << RUNTIME_PLACE_BITS | place;
}

inline_ u64 runtime_mark_of(enum runtime_kind kind, enum runtime_mark mark)
{
	return runtime_word(0, kind << RUNTIME_MARK_BITS | mark);
}

#define RUNTIME_END RUNTIME_MARKS /* in place of a mark: the last frame was added before */

inline_ u64 runtime_mark_word(struct runtime_walk *r, enum runtime_mark mark)
{
	return runtime_mark_of(r->file.kind, mark);
}

inline_ void runtime_add(struct runtime_walk *r, u64 word)
{
	u32 n = r->frames;

	barrier_var(n);
	if (n >= STACK_MOST)
		return;
	r->words[n] = word;
	r->frames = n + 1;
}

/* The frames since the last call are one segment. */
inline_ void runtime_end_segment(struct runtime_walk *r, u64 anchor)
{
	u32 last = r->frames - 1, n = r->segments;

	barrier_var(last);
	barrier_var(n);
	if (last >= STACK_MOST || n >= RUNTIME_SEGMENTS || r->words[last] & RUNTIME_LAST)
		return;
	r->words[last] |= RUNTIME_LAST;
	r->anchor[n] = anchor;
	r->segments = n + 1;
}

/* Steps by each call of a function that steps: a call costs a third of a step where walks are by
 * task. */
#define RUNTIME_STEPS 4

/* The body of that function of an interpreter. Not 0: a mark, or RUNTIME_END. */
inline_ int runtime_some_steps(int (*step)(struct walk *w))
{
	struct walk *w = current_walk();
	int failed = 0;

	if (!runtimes || !w)
		return RUNTIME_END;
#pragma unroll
	for (int i = 0; i < RUNTIME_STEPS; i++) {
		barrier_var(w); /* or addresses of all steps are kept on the stack */
		failed = step(w);
		if (failed)
			break;
	}
	return failed;
}

/* Steps to the outermost frame. Not 0: a mark, which is the last one. */
inline_ int runtime_all_steps(int (*some_steps)(void))
{
	int failed = 0;

	for (u32 i = 0; i < STACK_MOST / RUNTIME_STEPS + 1 && !failed; i++)
		failed = some_steps();
	return failed == RUNTIME_END ? 0 : failed;
}

/* Copies characters of one byte each; the loader checks them. */
inline_ void runtime_copy_text(u64 chars, u64 length, struct runtime_text *text, char *to,
			       const u32 room)
{
	u32 bytes = length > room ? room : (u32)length;

	barrier_var(bytes);
	if (bytes > room || bpf_probe_read_user(to, bytes, (void *)chars))
		return;
	text->cut = length > room;
	text->bytes = (u16)bytes;
	text->kind = RUNTIME_UTF8;
}

/* For sending one. */
struct runtime_record {
	u64 used; /* in use by a program, which one of another task may have preempted */
	struct runtime_code code;
};

SCRATCH(runtime_record, struct runtime_record);

struct runtime_recent {
	u64 number[4096];
};

/* Numbers of code objects whose names were sent, each at a place that others may take. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct runtime_recent);
} runtime_recent SEC(".maps");

/* Remembers a code object whose names have not been sent. */
inline_ void runtime_meet(struct runtime_walk *r, u64 code, u64 number)
{
	struct runtime_recent *recent;
	u32 zero = 0, n = r->met;

	recent = bpf_map_lookup_elem(&runtime_recent, &zero);
	if (!recent || recent->number[number >> RUNTIME_KIND_BITS & 4095] == number)
		return;
	if (bpf_map_lookup_elem(&runtime_codes, &number)) {
		recent->number[number >> RUNTIME_KIND_BITS & 4095] = number;
		return;
	}
	barrier_var(n);
	if (n >= RUNTIME_MEETS)
		return; /* sent with one of the next stacks */
	r->meet[n] = code;
	r->meet_number[n] = number;
	r->met = n + 1;
}

/* The number of a code object that this walk has met, whose address is `code`; 0: it has not. */
inline_ u64 runtime_seen(struct runtime_walk *r, u64 code)
{
	u32 place = (u32)(code >> 5 ^ code >> 9) & (RUNTIME_SEEN - 1);

	return r->seen[place] == code + 1 ? r->seen_number[place] : 0;
}

/* The number of a code object, from a hash of what identifies it. */
inline_ u64 runtime_number_of(struct walk *w, enum runtime_kind kind, u64 hash)
{
	u64 number = walk_hash(hash, w->program) >> (64 - RUNTIME_NUMBER_BITS);

	return (number & ~(u64)RUNTIME_KIND_MASK) | kind;
}

/* Gives a code object its number. `object`: for the names. */
inline_ u64 runtime_number(struct walk *w, u64 code, u64 object, u64 hash)
{
	struct runtime_walk *r = &w->runtime;
	u32 place = (u32)(code >> 5 ^ code >> 9) & (RUNTIME_SEEN - 1);
	u64 number = runtime_number_of(w, r->file.kind, hash);

	r->seen[place] = code + 1;
	r->seen_number[place] = number;
	runtime_meet(r, object, number);
	return number;
}

/*
 * Keeps the frame pointer of the frame found last, to which no unwind table applied. Frames of
 * Python, PHP and Ruby, if there are any, are where these would be.
 */
inline_ void runtime_guessed(struct walk *w, u64 fp)
{
	struct runtime_walk *r = &w->runtime;
	u32 n = r->guesses;

	barrier_var(n);
	if (!runtimes || n >= STACK_MOST || (r->begun && r->file.kind != RUNTIME_V8))
		return;
	r->guess[n] = fp << RUNTIME_GUESS_SHIFT | ((w->stack.depth - 1) & (STACK_MOST - 1));
	r->guesses = n + 1;
}

/* Adds frames of the next segment, or of all others, to the stack; 0: there are more. */
__noinline int runtime_emit_some(bool all)
{
	struct walk *w = current_walk();
	struct runtime_walk *r;

	if (!runtimes || !w)
		return 1;
	r = &w->runtime;
	for (int i = 0; i < 8; i++) {
		u32 at = r->given;
		u64 word;

		barrier_var(at);
		if (at >= STACK_MOST || at >= r->frames || w->stack.depth >= stack_user_depth)
			return 1;
		word = r->words[at];
		walk_found(w, word & ~RUNTIME_LAST);
		r->given = at + 1;
		if (word & RUNTIME_LAST && !all)
			return 1;
	}
	return 0;
}

inline_ int runtime_emit(bool all)
{
	int done = 0;

	for (u32 i = 0; i < STACK_MOST / 8 + 1 && !done; i++)
		done = runtime_emit_some(all);
	return done;
}

/* Does the native frame that ends at this address run frames, in a file with an interpreter? */
inline_ bool runtime_is_here(struct runtime_walk *r, u64 cfa, u64 place)
{
	u32 segment = r->emitted;
	u64 anchor;

	if (segment >= r->segments)
		return false;
	barrier_var(segment);
	anchor = r->anchor[segment & (RUNTIME_SEGMENTS - 1)];
	return anchor ? anchor < cfa : place >= r->file.eval_begin && place < r->file.eval_end;
}

/* Adds the frames that it runs. */
__noinline int runtime_here(void)
{
	struct walk *w = current_walk();

	if (!runtimes || !w)
		return 0;
	w->runtime.emitted++;
	return runtime_emit(false);
}

#endif
