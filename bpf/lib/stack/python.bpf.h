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

#include "lib/stack/runtime.bpf.h"

#define PYTHON_THREADS 512 /* looked at in the interpreters' lists: new ones are at the start */

/* The interpreter's structure of a thread. */
MAP(LRU_HASH, runtime_threads, 4096, struct runtime_thread, u64);

inline_ u8 python_byte_of_frame(struct runtime_walk *r, u32 offset)
{
	return (u8)(runtime_of_block(r, offset) >> (offset & 7) * 8);
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

/*
 * Identifies a code object and its contents. From 3.12 on co_version is a count, which is never
 * given twice; before, names of files differ where other pointers are reused.
 */
inline_ u64 python_check(struct runtime_walk *r, struct python_layout *at)
{
	u64 hash = walk_hash(0, runtime_of_code(r, at->name));

	hash = walk_hash(hash, runtime_of_code(r, at->lines));
	hash = walk_hash(hash, runtime_of_code(r, at->file));
	hash = walk_hash(hash, runtime_half_of_code(r, at->line));
	if (at->version)
		return walk_hash(hash, runtime_half_of_code(r, at->version));
	/* Length and hash of the file's name. */
	if (!bpf_probe_read_user(r->code, 16, (void *)(runtime_of_code(r, at->file) + 16)))
		hash = walk_hash(walk_hash(hash, r->code[0]), r->code[1]);
	return hash;
}

/* The number of a code object; 0: it is none. */
inline_ u64 python_number(struct walk *w, u64 code)
{
	struct runtime_walk *r = &w->runtime;
	struct python_layout *at = &r->file.python;
	u64 number = runtime_seen(r, code);

	if (number)
		return number;
	if (bpf_probe_read_user(r->code, 144, (void *)code) ||
	    runtime_of_code(r, at->type) != r->bias + r->file.other)
		return 0;
	return runtime_number(w, code, code, walk_hash(python_check(r, at), code));
}

/* Adds the frame at r->at, and steps to its caller's. Not 0: a mark, or RUNTIME_END. */
inline_ int python_step(struct walk *w)
{
	struct runtime_walk *r = &w->runtime;
	struct python_layout *at = &r->file.python;
	u64 frame, code, instruction, number, place;
	bool last;

	frame = r->at;
	if (!frame || r->frames >= STACK_MOST || r->segments >= RUNTIME_SEGMENTS)
		return RUNTIME_END;
	if (!python_read_frame(r, frame))
		return RUNTIME_MARK_UNREADABLE;
	r->at = runtime_of_block(r, at->previous);
	if (python_is_own_frame(r)) {
		runtime_end_segment(r, frame);
		return 0;
	}
	code = runtime_of_block(r, at->executable) & ~7ULL;
	instruction = runtime_of_block(r, at->instruction);
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
		if (!runtime_read(r->c_frame + at->c_previous, &r->c_frame))
			return RUNTIME_MARK_UNREADABLE;
	}
	return 0;
}

__noinline int python_steps(void)
{
	return runtime_some_steps(python_step);
}

/* The frame that the thread runs; false: not readable. */
inline_ bool python_first_frame(struct runtime_walk *r, u64 thread)
{
	struct python_layout *at = &r->file.python;

	r->c_frame = 0;
	if (at->frames == PYTHON_COUNTED) {
		/* Frame objects are linked apart from the C structures: `c_frame` is in the thread.
		 */
		return runtime_read(thread + at->current, &r->c_frame) &&
		       runtime_read(thread + at->c_frame, &r->at);
	}
	if (!runtime_read(thread + at->current, &r->at))
		return false;
	if (at->frames != PYTHON_INLINED && at->frames != PYTHON_SHIMS)
		return true;
	r->c_frame = r->at;
	return runtime_read(r->c_frame + at->c_frame, &r->at);
}

/* Up to 3.12 a loop that begins is linked before it has a frame: the caller's is the first one. */
inline_ bool python_outer_frame(struct runtime_walk *r)
{
	struct python_layout *at = &r->file.python;

	return (at->frames == PYTHON_INLINED || at->frames == PYTHON_SHIMS) &&
	       runtime_read(r->c_frame + at->c_previous, &r->c_frame) && r->c_frame &&
	       runtime_read(r->c_frame + at->c_frame, &r->at);
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
		if (!r->interpreter || !runtime_read(r->interpreter + at->threads, &r->at) ||
		    !runtime_read(r->interpreter + at->interpreter, &r->interpreter))
			return PYTHON_NO_MORE;
		return PYTHON_GO_ON;
	}
	if (!runtime_read(r->at + at->id, &id))
		return PYTHON_NO_MORE;
	if (id == r->thread.id)
		return PYTHON_FOUND;
	return runtime_read(r->at + at->thread, &r->at) ? PYTHON_GO_ON : PYTHON_NO_MORE;
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
	if (known && runtime_read(*known + at->id, &id) && id == r->thread.id) {
		r->at = *known;
		return PYTHON_FOUND;
	}
	r->at = 0;
	if (!runtime_read(r->bias + r->file.runtime + at->interpreters, &r->interpreter))
		return PYTHON_NO_MORE;
	for (int i = 0; i < PYTHON_THREADS && found == PYTHON_GO_ON; i++)
		found = python_thread_step();
	if (found == PYTHON_FOUND)
		bpf_map_update_elem(&runtime_threads, &r->thread, &r->at, BPF_ANY);
	return found;
}

/* Reads all frames of the thread. Not 0: a mark, which is the last one. */
inline_ int python_begin(struct runtime_walk *r)
{
	int failed;

	r->block_at = 0;
	r->block_end = 0;
	if (r->file.python.frames == PYTHON_NOT_KNOWN)
		return RUNTIME_MARK_VERSION;
	failed = python_thread();
	if (failed == PYTHON_NO_MORE)
		return 0; /* before the interpreter's start, after its end, or not its thread */
	if (failed == PYTHON_GO_ON)
		return RUNTIME_MARK_THREAD;
	if (!python_first_frame(r, r->at))
		return RUNTIME_MARK_UNREADABLE;
	failed = python_steps();
	if (failed == RUNTIME_MARK_UNREADABLE && !r->frames && python_outer_frame(r))
		failed = 0;
	if (failed)
		return failed == RUNTIME_END ? 0 : failed;
	return runtime_all_steps(python_steps);
}

/* Of a string's state, PyASCIIObject: interned 2 bits, kind 3, compact 1, ascii 1. */
#define PYTHON_KIND(state) ((state) >> 2 & 7)
#define PYTHON_COMPACT 0x20
#define PYTHON_ASCII 0x40

/* Copies a string's characters; the loader checks them. */
inline_ void python_text(struct python_layout *at, u64 string, struct runtime_text *text, char *to,
			 const u32 room)
{
	u64 length = 0;
	u32 state = 0, bytes;

	if (bpf_probe_read_user(&length, sizeof(length), (void *)(string + 16)) ||
	    bpf_probe_read_user(&state, sizeof(state), (void *)(string + 32)) ||
	    !(state & PYTHON_COMPACT))
		return;
	text->cut = length * PYTHON_KIND(state) > room;
	bytes = length > room ? room : (u32)length * PYTHON_KIND(state);
	if (bytes > room)
		bytes = room;
	barrier_var(bytes);
	if (bytes > room)
		return;
	if (bpf_probe_read_user(
		    to, bytes, (void *)(string + (state & PYTHON_ASCII ? at->ascii : at->compact))))
		return;
	text->bytes = (u16)bytes;
	text->kind = PYTHON_KIND(state);
}

inline_ u32 python_lines(u64 table, struct runtime_code *to)
{
	u64 length = 0;
	u32 bytes;

	if (bpf_probe_read_user(&length, sizeof(length), (void *)(table + 16)))
		return 0;
	to->line_bytes = length > 0xffffffff ? 0xffffffff : (u32)length;
	bytes = to->line_bytes;
	if (bytes > RUNTIME_LINES)
		bytes = RUNTIME_LINES;
	barrier_var(bytes);
	if (bytes > RUNTIME_LINES || bpf_probe_read_user(to->lines, bytes, (void *)(table + 32))) {
		to->line_bytes = 0;
		return 0;
	}
	return bytes;
}

/* Copies names and lines of a code object; returns the bytes of its table of lines, -1: none. */
inline_ int python_describe(struct runtime_walk *r, struct runtime_code *code, u64 object)
{
	struct python_layout *at = &r->file.python;

	if (bpf_probe_read_user(r->code, 144, (void *)object))
		return -1;
	code->minor = at->minor;
	code->line = runtime_half_of_code(r, at->line);
	python_text(at, runtime_of_code(r, at->file), &code->file, code->file_text,
		    RUNTIME_FILE_NAME);
	python_text(at, runtime_of_code(r, at->name), &code->name, code->name_text, RUNTIME_NAME);
	return (int)python_lines(runtime_of_code(r, at->lines), code);
}

#endif
