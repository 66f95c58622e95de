/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of Ruby 3, from its own structures (vm_core.h, method.h, imemo.h in its sources), at their
 * places among native frames.
 *
 * A variable of each thread points to its execution context, which has the thread's or fiber's
 * frames as an array, the innermost first. A run of the interpreter's loop, vm_exec_core(), has the
 * frames up to one that is marked; functions written in C have frames, too. Code is accepted if the
 * frame's instruction is in it.
 *
 * Contexts: as current_walk() allows; user memory is read without faults. x86-64.
 */
#ifndef CORETAP_RUBY_BPF_H
#define CORETAP_RUBY_BPF_H

#include "lib/stack/runtime.bpf.h"

/* Words of a frame (struct rb_control_frame_struct). */
enum ruby_frame { RUBY_NEXT, RUBY_CODE = 2, RUBY_ENVIRONMENT = 4 };

/* The last three words of the frame's environment (its variables), in `code` behind the body. */
#define RUBY_ENVIRONMENT_AT 16
enum ruby_environment { RUBY_METHOD = RUBY_ENVIRONMENT_AT, RUBY_FLAGS = RUBY_METHOD + 2 };

#define RUBY_LAST 0x20 /* VM_FRAME_FLAG_FINISH: the first frame of a run of the loop */
#define RUBY_OF_C 0x80 /* VM_FRAME_FLAG_CFRAME */
#define RUBY_KIND 0x7fff0001
#define RUBY_METHOD_IN_C 0x55550001

#define RUBY_BODY 16 /* in code (struct rb_iseq_struct) */

/* Words of code's body (struct rb_iseq_constant_body), in `code`. */
enum ruby_body {
	RUBY_SIZE, /* in the high half: words of its instructions */
	RUBY_INSTRUCTIONS,
	RUBY_PATH = 8,
	RUBY_LABEL = 10,
	RUBY_LINE,
	RUBY_BODY_WORDS
};

/* Words of a method (struct rb_method_entry_struct). */
enum ruby_method { RUBY_METHOD_FLAGS, RUBY_DEFINITION = 2, RUBY_NAME, RUBY_METHOD_WORDS };

/* The first words of a string or array, in `code` behind these. */
#define RUBY_OBJECT_AT 24

/* In the flags of objects. */
#define RUBY_TYPE 0x1f
#define RUBY_ARRAY 7
#define RUBY_BY_USER 12        /* bits from here on differ between types: */
#define RUBY_ELSEWHERE 0x2000  /* a string: its characters are not in it */
#define RUBY_EMBEDDED 0x2000   /* an array: its elements are in it */
#define RUBY_INTERNAL_KIND 0xf /* of the interpreter's own objects: */
#define RUBY_METHOD_ENTRY 6

#define RUBY_IN_C 1 /* in the lowest bit of an object's address: it is a method, not code */

/* Reads a frame; the block has others, too, as all are in one array. */
inline_ bool ruby_read_frame(struct runtime_walk *r, u64 at)
{
	u64 bytes = r->end - at;
	u32 size;

	if (at >= r->block_at && at + r->file.ruby.frame <= r->block_end) {
		r->frame = (at - r->block_at) / 8;
		return true;
	}
	size = bytes > RUNTIME_BLOCK ? RUNTIME_BLOCK : (u32)bytes;
	barrier_var(size);
	r->frame = 0;
	r->block_at = at;
	r->block_end = at;
	if (size > RUNTIME_BLOCK || bpf_probe_read_user(r->block, size, (void *)at))
		return false;
	r->block_end = at + size;
	return true;
}

/* Copies the body of code; false: the instruction is not in it. */
inline_ bool ruby_read_body(struct runtime_walk *r, u64 body, u64 next, u32 *place)
{
	u64 *code = r->code, words;

	if (bpf_probe_read_user(code, RUBY_BODY_WORDS * sizeof(u64), (void *)body))
		return false;
	words = (next - code[RUBY_INSTRUCTIONS]) / 8;
	if (words > code[RUBY_SIZE] >> 32)
		return false;
	/* The next instruction is known: the one before it runs. */
	*place = words ? (u32)words - 1 : 0;
	return true;
}

inline_ u64 ruby_number(struct walk *w, u64 body)
{
	u64 *code = w->runtime.code, hash;

	hash = walk_hash(walk_hash(0, code[RUBY_INSTRUCTIONS]), code[RUBY_SIZE]);
	hash = walk_hash(walk_hash(hash, code[RUBY_PATH]), code[RUBY_LABEL]);
	return runtime_number(w, body, body, walk_hash(hash, (u32)code[RUBY_LINE]));
}

/* Adds the frame of a method written in C. */
inline_ int ruby_add_method(struct walk *w, u64 method)
{
	struct runtime_walk *r = &w->runtime;
	u64 number = runtime_seen(r, method), kind;

	if (!number) {
		if (bpf_probe_read_user(r->code, RUBY_METHOD_WORDS * sizeof(u64), (void *)method))
			return RUNTIME_MARK_FRAME;
		kind = r->code[RUBY_METHOD_FLAGS] >> RUBY_BY_USER & RUBY_INTERNAL_KIND;
		if (kind != RUBY_METHOD_ENTRY)
			return RUNTIME_MARK_FRAME;
		number = walk_hash(walk_hash(0, r->code[RUBY_DEFINITION]), r->code[RUBY_NAME]);
		number = runtime_number(w, method, method | RUBY_IN_C, number);
	}
	runtime_add(r, runtime_word(number, 0));
	return 0;
}

/* Adds the frame at r->at, and steps to its caller's. Not 0: a mark, or RUNTIME_END. */
inline_ int ruby_step(struct walk *w)
{
	struct runtime_walk *r = &w->runtime;
	u64 at = r->at, next, code, body, number;
	bool starts = false;
	u32 place = 0;

	if (at + r->file.ruby.frame > r->end || r->frames >= STACK_MOST ||
	    r->segments >= RUNTIME_SEGMENTS)
		return RUNTIME_END;
	if (!ruby_read_frame(r, at))
		return RUNTIME_MARK_UNREADABLE;
	r->at = at + r->file.ruby.frame;
	next = runtime_of_block(r, RUBY_NEXT * 8);
	code = runtime_of_block(r, RUBY_CODE * 8);
	/* The last word is at the environment's address. */
	if (bpf_probe_read_user(&r->code[RUBY_ENVIRONMENT_AT], 24,
				(void *)(runtime_of_block(r, RUBY_ENVIRONMENT * 8) - 16)))
		return RUNTIME_MARK_UNREADABLE;
	if (r->code[RUBY_FLAGS] & RUBY_OF_C) {
		if ((r->code[RUBY_FLAGS] & RUBY_KIND) == RUBY_METHOD_IN_C &&
		    ruby_add_method(w, r->code[RUBY_METHOD]))
			runtime_add(r, runtime_mark_word(r, RUNTIME_MARK_FRAME));
	} else if (code && next) {
		if (!runtime_read(code + RUBY_BODY, &body) ||
		    !ruby_read_body(r, body, next, &place))
			return RUNTIME_MARK_UNREADABLE;
		number = runtime_seen(r, body);
		if (!number)
			number = ruby_number(w, body);
		runtime_add(r, runtime_word(number, place > RUNTIME_PLACE_MASK ? 0 : place));
		/* The first instruction is next: C code has made the frame, and is about to run
		 * the loop for it. */
		starts = !r->inside && r->frames == 1 && next == r->code[RUBY_INSTRUCTIONS];
	}
	if (r->code[RUBY_FLAGS] & RUBY_LAST && r->frames && !starts)
		runtime_end_segment(r, 0);
	return 0;
}

__noinline int ruby_steps(void)
{
	return runtime_some_steps(ruby_step);
}

/* The address of the thread's execution context; 0: it has none. */
inline_ u64 ruby_context(struct runtime_walk *r)
{
	struct ruby_layout *layout = &r->file.ruby;
	u64 at = thread_pointer(), *index = r->code, blocks;

	if (layout->has_module) {
		/*
		 * The thread's blocks, by module: glibc's array (dtv_t) has two words for each, of
		 * which the first one's second is 0; musl's has one.
		 */
		if (bpf_probe_read_user(index, 16, (void *)(r->bias + r->file.runtime)) ||
		    !runtime_read(at + 8, &blocks) || !runtime_read(blocks + 8, &at) ||
		    !runtime_read(blocks + index[0] * (at ? 8 : 16), &at))
			return 0;
		at += index[1];
	}
	return runtime_read(at + (u64)layout->context, &blocks) ? blocks : 0;
}

/* Reads all frames of the thread. Not 0: a mark, which is the last one. A separate function, for
 * its stack. */
__noinline int ruby_begin(void)
{
	struct walk *w = current_walk();
	struct runtime_walk *r;
	u64 *context, place;

	if (!runtimes || !w)
		return 0;
	r = &w->runtime;
	if (!r->file.ruby.frame)
		return RUNTIME_MARK_VERSION;
	r->at = ruby_context(r);
	if (!r->at) /* no thread of Ruby's */
		return 0;
	/* Its stack, the stack's size in words, and its innermost frame. */
	context = r->code;
	if (bpf_probe_read_user(context, 24, (void *)r->at))
		return RUNTIME_MARK_UNREADABLE;
	r->block_at = 0;
	r->block_end = 0;
	/* The outermost frame is none: it is what the stack of a thread or fiber begins with. */
	r->end = context[0] + context[1] * 8 - r->file.ruby.frame;
	r->at = context[2];
	if (r->at & 7 || r->at < context[0])
		return RUNTIME_MARK_UNREADABLE;
	place = w->ip - r->bias;
	r->inside = w->exact && place >= r->file.eval_begin && place < r->file.eval_end;
	return runtime_all_steps(ruby_steps);
}

/* Copies a string's characters. */
inline_ void ruby_text(struct runtime_walk *r, u64 string, struct runtime_text *text, char *to,
		       const u32 room)
{
	u64 *words = &r->code[RUBY_OBJECT_AT], length, chars = string + r->file.ruby.embedded;

	if (bpf_probe_read_user(words, 32, (void *)string))
		return;
	length = words[2];
	if (words[0] & RUBY_ELSEWHERE)
		chars = words[3];
	else if (r->file.ruby.embedded == 16) /* up to 3.1 the flags have the length */
		length = words[0] >> 14 & 31;
	runtime_copy_text(chars, length, text, to, room);
}

/* An element of an array; false: it has none. */
inline_ bool ruby_element(struct runtime_walk *r, u64 array, u64 index, u64 *element)
{
	u64 *words = &r->code[RUBY_OBJECT_AT];

	if (bpf_probe_read_user(words, 40, (void *)array) || (words[0] & RUBY_TYPE) != RUBY_ARRAY)
		return false;
	return runtime_read((words[0] & RUBY_EMBEDDED ? array + 16 : words[4]) + index * 8,
			    element);
}

/* Copies the name of a method written in C. */
inline_ int ruby_describe_method(struct runtime_walk *r, struct runtime_code *code, u64 method)
{
	u64 number, names, some, name;

	if (bpf_probe_read_user(r->code, RUBY_METHOD_WORDS * sizeof(u64), (void *)method))
		return -1;
	/* Operators have small numbers, others have bits of their kind below. */
	number = r->code[RUBY_NAME] < 1024 ? r->code[RUBY_NAME] : r->code[RUBY_NAME] >> 4;
	/* The array has arrays of 512 pairs: a name, and its symbol. */
	if (r->file.other && runtime_read(r->bias + r->file.other, &names) &&
	    ruby_element(r, names, (u32)number / 512, &some) &&
	    ruby_element(r, some, number % 512 * 2, &name))
		ruby_text(r, name, &code->name, code->name_text, RUNTIME_NAME);
	return 0;
}

/* Copies the table of lines, or says where it is; returns the bytes. */
inline_ u32 ruby_describe_lines(struct runtime_walk *r, char *to, u64 body)
{
	struct ruby_lines *lines = (struct ruby_lines *)to;
	u32 entries, table, more;

	lines->at = body + r->file.ruby.lines;
	if (bpf_probe_read_user(&lines->entries_at, 32, (void *)lines->at))
		return 0;
	lines->places = (u32)(r->code[RUBY_SIZE] >> 32);
	lines->pad = 0;
	more = lines->places > RUBY_FIRST_PLACES ? lines->places - RUBY_FIRST_PLACES : 0;
	table = RUBY_FIRST_BYTES +
		(more + RUBY_BLOCK_PLACES - 1) / RUBY_BLOCK_PLACES * RUBY_BLOCK_BYTES;
	entries = (u32)lines->entries;
	to += sizeof(*lines);
	barrier_var(table);
	if (table > RUBY_TABLE)
		return sizeof(*lines);
	if (lines->positions)
		return sizeof(*lines);
	__builtin_memset(to, 0, RUBY_TABLE);
	if (entries > 1 && bpf_probe_read_user(to, table, (void *)lines->table_at))
		return 0;
	barrier_var(entries);
	if (entries > (RUNTIME_LINES - sizeof(*lines) - RUBY_TABLE) / RUBY_ENTRY)
		return sizeof(*lines);
	entries *= RUBY_ENTRY;
	if (bpf_probe_read_user(to + RUBY_TABLE, entries, (void *)lines->entries_at))
		return 0;
	return sizeof(*lines) + RUBY_TABLE + entries;
}

/* Copies the names of code or of a method; returns the bytes of its lines, -1: it is none. */
inline_ int ruby_describe(struct runtime_walk *r, struct runtime_code *code, u64 object)
{
	u64 path;
	u32 line;

	if (object & RUBY_IN_C)
		return ruby_describe_method(r, code, object & ~(u64)RUBY_IN_C);
	if (bpf_probe_read_user(r->code, RUBY_BODY_WORDS * sizeof(u64), (void *)object))
		return -1;
	line = (u32)r->code[RUBY_LINE];
	code->line = r->file.ruby.embedded == 16 ? line >> 1 : line; /* up to 3.1: an Integer */
	/* The path, or an array of it and the real one. */
	if (!ruby_element(r, r->code[RUBY_PATH], 0, &path))
		path = r->code[RUBY_PATH];
	ruby_text(r, path, &code->file, code->file_text, RUNTIME_FILE_NAME);
	ruby_text(r, r->code[RUBY_LABEL], &code->name, code->name_text, RUNTIME_NAME);
	code->line_bytes = ruby_describe_lines(r, code->lines, object);
	return (int)code->line_bytes;
}

#endif
