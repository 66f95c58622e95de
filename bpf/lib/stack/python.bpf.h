/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of CPython 3.9 and later, from its own structures, at their places among native frames.
 *
 * Each run of the evaluation loop has a structure in its native frame: an address that shows where
 * its frames belong ("anchor"). The thread is found in the interpreter's list, by its thread
 * pointer. A code object is accepted by its type; its number depends on the pointers in it, as
 * code objects are freed and others made at the same address.
 *
 * Contexts: as current_walk() allows; user memory is read without faults. x86-64.
 */
#ifndef CORETAP_PYTHON_BPF_H
#define CORETAP_PYTHON_BPF_H

#include "lib/stack/user_words.bpf.h"

OPT(bool, runtimes); /* frames of interpreters are wanted, too */

#define PYTHON_THREADS 512 /* looked at in the interpreters' lists: new ones are at the start */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNTIME_FILES);
	__type(key, u32);
	__type(value, struct runtime_file);
} runtime_files SEC(".maps");

/* The interpreter's structure of a thread. */
MAP(LRU_HASH, runtime_threads, 4096, struct runtime_thread, u64);

/* Code objects whose names were sent, by number. */
MAP(LRU_HASH, runtime_codes, 16384, u64, u64);

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

inline_ bool python_word(u64 address, u64 *word)
{
	return !bpf_probe_read_user(word, sizeof(*word), (void *)address);
}

/* A word of the frame that was read last. */
inline_ u64 python_of_frame(struct runtime_walk *r, u32 offset)
{
	u32 i = (u32)r->frame + offset / 8;

	barrier_var(i);
	return i < (RUNTIME_BLOCK + RUNTIME_FRAME) / 8 ? r->block[i] : 0;
}

inline_ u8 python_byte_of_frame(struct runtime_walk *r, u32 offset)
{
	return (u8)(python_of_frame(r, offset) >> (offset & 7) * 8);
}

/* Is the frame that was read last the loop's own, which is in a native frame? */
inline_ bool python_is_own_frame(struct runtime_walk *r)
{
	struct python_layout *of = &r->file.python;

	return of->frames >= PYTHON_SHIMS && python_byte_of_frame(r, of->owner) >= 3;
}

/*
 * Reads what is below a frame on its page, too: the caller's frame is mostly there. Not below the
 * page, as a fault costs as much as ten frames.
 */
inline_ void python_read_block(struct runtime_walk *r, u64 at, u32 bytes)
{
	u64 end = at + bytes, start = end - RUNTIME_BLOCK;
	u32 size;

	if (start < (at & ~4095ULL))
		start = at & ~4095ULL;
	size = (u32)(end - start);
	barrier_var(size);
	r->block_at = 0;
	r->block_end = 0;
	if (size > RUNTIME_BLOCK || bpf_probe_read_user(r->block, size, (void *)start))
		return;
	r->block_at = start;
	r->block_end = end;
}

/*
 * Reads a frame. The loops' own frames are in native ones, frame objects anywhere: only a frame
 * that is neither says where its caller's is.
 */
inline_ int python_read_frame(struct runtime_walk *r, u64 at)
{
	struct python_layout *of = &r->file.python;
	u32 bytes = of->frame_bytes;

	if (at & 7 || bytes > RUNTIME_FRAME)
		return 0;
	if (at < r->block_at && r->block_at - at < RUNTIME_BLOCK)
		python_read_block(r, at, bytes);
	if (at >= r->block_at && at + bytes <= r->block_end) {
		r->frame = (at - r->block_at) / 8;
		return 1;
	}
	barrier_var(bytes);
	if (bytes > RUNTIME_FRAME ||
	    bpf_probe_read_user(r->block + RUNTIME_BLOCK / 8, bytes, (void *)at))
		return 0;
	r->frame = RUNTIME_BLOCK / 8;
	if (of->frames >= PYTHON_INLINED && !python_is_own_frame(r))
		python_read_block(r, at, bytes);
	return 1;
}

inline_ u64 python_of_code(struct runtime_walk *r, u32 offset)
{
	u32 i = offset / 8;

	barrier_var(i);
	return r->code[i & 31];
}

inline_ u32 python_half_of_code(struct runtime_walk *r, u32 offset)
{
	return (u32)(python_of_code(r, offset) >> (offset & 4) * 8);
}

inline_ u64 runtime_word(u64 number, u64 place)
{
	return STACK_RUNTIME | number << RUNTIME_PLACE_BITS | place;
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

/*
 * Identifies a code object and its contents. From 3.12 on co_version is a count, which is never
 * given twice; before, names of files differ where other pointers are reused.
 */
inline_ u64 python_check(struct runtime_walk *r, struct python_layout *at)
{
	u64 hash = walk_hash(0, python_of_code(r, at->name));

	hash = walk_hash(hash, python_of_code(r, at->lines));
	hash = walk_hash(hash, python_of_code(r, at->file));
	hash = walk_hash(hash, python_half_of_code(r, at->line));
	if (at->version)
		return walk_hash(hash, python_half_of_code(r, at->version));
	/* Length and hash of the file's name. */
	if (!bpf_probe_read_user(r->code, 16, (void *)(python_of_code(r, at->file) + 16)))
		hash = walk_hash(walk_hash(hash, r->code[0]), r->code[1]);
	return hash;
}

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
inline_ void python_meet(struct runtime_walk *r, u64 code, u64 number)
{
	struct runtime_recent *recent;
	u32 zero = 0, n = r->met;

	recent = bpf_map_lookup_elem(&runtime_recent, &zero);
	if (!recent || recent->number[number & 4095] == number)
		return;
	if (bpf_map_lookup_elem(&runtime_codes, &number)) {
		recent->number[number & 4095] = number;
		return;
	}
	barrier_var(n);
	if (n >= RUNTIME_MEETS)
		return; /* sent with one of the next stacks */
	r->meet[n] = code;
	r->meet_number[n] = number;
	r->met = n + 1;
}

/* The number of a code object; 0: it is none. */
inline_ u64 python_number(struct walk *w, u64 code)
{
	struct runtime_walk *r = &w->runtime;
	struct python_layout *at = &r->file.python;
	u32 place = (u32)(code >> 5 ^ code >> 9) & (RUNTIME_SEEN - 1);
	u64 number;

	if (r->seen[place] == code + 1)
		return r->seen_number[place];
	if (bpf_probe_read_user(r->code, 144, (void *)code) ||
	    python_of_code(r, at->type) != r->bias + r->file.code_type)
		return 0;
	number = walk_hash(walk_hash(python_check(r, at), code), w->program);
	number = number >> (64 - RUNTIME_NUMBER_BITS) | 1; /* 0 are marks */
	r->seen[place] = code + 1;
	r->seen_number[place] = number;
	python_meet(r, code, number);
	return number;
}

#define PYTHON_END RUNTIME_MARKS /* the last frame was added before */

/* Adds the frame at r->at, and steps to its caller's. Not 0: a mark, or PYTHON_END. */
inline_ int python_step(struct walk *w)
{
	struct runtime_walk *r = &w->runtime;
	struct python_layout *at = &r->file.python;
	u64 frame, code, instruction, number, place;
	bool last;

	frame = r->at;
	if (!frame || r->frames >= STACK_MOST || r->segments >= RUNTIME_SEGMENTS)
		return PYTHON_END;
	if (!python_read_frame(r, frame))
		return RUNTIME_MARK_UNREADABLE;
	r->at = python_of_frame(r, at->previous);
	if (python_is_own_frame(r)) {
		runtime_end_segment(r, frame);
		return 0;
	}
	code = python_of_frame(r, at->executable) & ~7ULL;
	instruction = python_of_frame(r, at->instruction);
	if (at->frames == PYTHON_OBJECTS || at->frames == PYTHON_COUNTED)
		instruction = (u32)instruction;
	last = at->frames == PYTHON_COUNTED ||
	       (at->frames == PYTHON_INLINED && python_byte_of_frame(r, at->first));
	number = python_number(w, code);
	if (!number)
		return RUNTIME_MARK_UNREADABLE;
	if (at->frames == PYTHON_OBJECTS)
		place = (u32)instruction / 2; /* bytes */
	else if (at->frames == PYTHON_COUNTED)
		place = instruction;
	else
		place = (instruction - code - at->code) / 2;
	if (place > RUNTIME_PLACE_MASK) /* before its first instruction */
		place = 0;
	runtime_add(r, runtime_word(number, place));
	if (at->frames == PYTHON_OBJECTS)
		runtime_end_segment(r, 0);
	if (last) {
		runtime_end_segment(r, r->c_frame);
		if (!python_word(r->c_frame + at->c_previous, &r->c_frame))
			return RUNTIME_MARK_UNREADABLE;
	}
	return 0;
}

#define PYTHON_STEPS 4 /* for each call, which costs a third of a step where walks are by task */

/* Several steps. */
__noinline int python_steps(void)
{
	struct walk *w = current_walk();
	int failed = 0;

	if (!runtimes || !w)
		return PYTHON_END;
#pragma unroll
	for (int i = 0; i < PYTHON_STEPS; i++) {
		failed = python_step(w);
		if (failed)
			break;
	}
	return failed;
}

/* The frame that the thread runs; false: not readable. */
inline_ bool python_first_frame(struct runtime_walk *r, u64 thread)
{
	struct python_layout *at = &r->file.python;

	r->c_frame = 0;
	if (at->frames == PYTHON_COUNTED) {
		/* Frame objects are linked apart from the C structures: `c_frame` is in the thread.
		 */
		return python_word(thread + at->current, &r->c_frame) &&
		       python_word(thread + at->c_frame, &r->at);
	}
	if (!python_word(thread + at->current, &r->at))
		return false;
	if (at->frames != PYTHON_INLINED && at->frames != PYTHON_SHIMS)
		return true;
	r->c_frame = r->at;
	return python_word(r->c_frame + at->c_frame, &r->at);
}

/* Up to 3.12 a loop that begins is linked before it has a frame: the caller's is the first one. */
inline_ bool python_outer_frame(struct runtime_walk *r)
{
	struct python_layout *at = &r->file.python;

	return (at->frames == PYTHON_INLINED || at->frames == PYTHON_SHIMS) &&
	       python_word(r->c_frame + at->c_previous, &r->c_frame) && r->c_frame &&
	       python_word(r->c_frame + at->c_frame, &r->at);
}

enum { PYTHON_GO_ON, PYTHON_FOUND, PYTHON_NO_MORE };

/* Looks at the thread in r->at, which is the interpreter's first one if it is 0. */
__noinline int python_thread_step(void)
{
	struct walk *w = current_walk();
	struct runtime_walk *r;
	struct python_layout *at;
	u64 id;

	if (!runtimes || !w)
		return PYTHON_NO_MORE;
	r = &w->runtime;
	at = &r->file.python;
	if (!r->at) {
		if (!r->interpreter || !python_word(r->interpreter + at->threads, &r->at) ||
		    !python_word(r->interpreter + at->interpreter, &r->interpreter))
			return PYTHON_NO_MORE;
		return PYTHON_GO_ON;
	}
	if (!python_word(r->at + at->id, &id))
		return PYTHON_NO_MORE;
	if (id == r->thread.id)
		return PYTHON_FOUND;
	return python_word(r->at + at->thread, &r->at) ? PYTHON_GO_ON : PYTHON_NO_MORE;
}

/*
 * Finds the interpreter's structure of the running thread, for r->at: PYTHON_NO_MORE: it has none;
 * PYTHON_GO_ON: there are too many.
 */
__noinline int python_thread(void)
{
	struct walk *w = current_walk();
	struct runtime_walk *r;
	struct python_layout *at;
	u64 id, *known;
	int found = PYTHON_GO_ON;

	if (!runtimes || !w)
		return PYTHON_NO_MORE;
	r = &w->runtime;
	at = &r->file.python;
	r->thread.program = w->program;
	r->thread.id = thread_pointer();
	if (!r->thread.id)
		return PYTHON_NO_MORE;
	known = bpf_map_lookup_elem(&runtime_threads, &r->thread);
	if (known && python_word(*known + at->id, &id) && id == r->thread.id) {
		r->at = *known;
		return PYTHON_FOUND;
	}
	r->at = 0;
	if (!python_word(r->bias + r->file.runtime + at->interpreters, &r->interpreter))
		return PYTHON_NO_MORE;
	for (int i = 0; i < PYTHON_THREADS && found == PYTHON_GO_ON; i++)
		found = python_thread_step();
	if (found == PYTHON_FOUND)
		bpf_map_update_elem(&runtime_threads, &r->thread, &r->at, BPF_ANY);
	return found;
}

/* Reads all frames of the thread. Called by walk_user(), as calls of it would be too deep. */
__noinline int runtime_begin(void)
{
	struct walk *w = current_walk();
	struct runtime_walk *r;
	struct runtime_file *file;
	u32 index;
	int failed;

	if (!runtimes || !w)
		return 0;
	r = &w->runtime;
	r->begun = 1;
	r->frames = 0;
	r->segments = 0;
	r->emitted = 0;
	r->given = 0;
	r->block_at = 0;
	r->block_end = 0;
	__builtin_memset(r->seen, 0, sizeof(r->seen));
	r->bias = w->found.bias;
	walk_cannot_repeat(w); /* the frames' words are not the native stack's */
	index = w->found.runtime;
	file = bpf_map_lookup_elem(&runtime_files, &index);
	if (!file)
		return 0;
	r->file = *file;
	if (r->file.python.frames == PYTHON_NOT_KNOWN) {
		runtime_add(r, runtime_word(0, RUNTIME_MARK_VERSION));
		runtime_end_segment(r, 0);
		return 0;
	}
	failed = python_thread();
	if (failed == PYTHON_NO_MORE)
		return 0; /* before the interpreter's start, after its end, or not its thread */
	if (failed == PYTHON_GO_ON)
		failed = RUNTIME_MARK_THREAD;
	else if (!python_first_frame(r, r->at))
		failed = RUNTIME_MARK_UNREADABLE;
	else
		failed = python_steps();
	if (failed == RUNTIME_MARK_UNREADABLE && !r->frames && python_outer_frame(r))
		failed = 0;
	for (u32 i = 0; i < STACK_MOST / PYTHON_STEPS + 1 && !failed; i++)
		failed = python_steps();
	if (failed == PYTHON_END)
		failed = 0;
	if (failed)
		runtime_add(r, runtime_word(0, (u32)failed));
	runtime_end_segment(r, 0); /* unless the last one has ended */
	return 0;
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

/* The walk has ended: adds the frames whose native ones it has not reached. */
__noinline int runtime_rest(void)
{
	return runtimes ? runtime_emit(true) : 0;
}

#endif
