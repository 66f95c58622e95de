/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of V8 (Node.js): JavaScript functions in place of the native frames that run them.
 *
 * V8's code, also that of its built-in functions, has frame pointers and no unwind tables. The walk
 * keeps the frame pointers of such frames; when it has met V8's file, they are looked at. Below the
 * frame pointer are a context and the function, or V8's number for a frame of its built-in code. A
 * function is accepted if it has an object of the type that V8 gives to functions' descriptions
 * (SharedFunctionInfo). Objects move: a function is identified by its script and its place there.
 *
 * Contexts: as current_walk() allows; user memory is read without faults. x86-64.
 */
#ifndef CORETAP_V8_BPF_H
#define CORETAP_V8_BPF_H

#include "lib/stack/runtime.bpf.h"

/* V8's pointers to objects are odd. */
inline_ bool v8_is_object(u64 word)
{
	return word & 1;
}

inline_ bool v8_member(u64 object, u32 offset, u64 *word)
{
	return runtime_read(object - 1 + offset, word);
}

#define V8_NO_TYPE 0xffffffffU

inline_ u32 v8_type_of_map(struct v8_layout *at, u64 map)
{
	u16 type;

	if (!v8_is_object(map) ||
	    bpf_probe_read_user(&type, sizeof(type), (void *)(map - 1 + at->type)))
		return V8_NO_TYPE;
	return type;
}

inline_ u32 v8_type(struct v8_layout *at, u64 object)
{
	u64 map;

	if (!v8_is_object(object) || !v8_member(object, 0, &map))
		return V8_NO_TYPE;
	return v8_type_of_map(at, map);
}

#define V8_SHARED_BYTES 80

/* Reads a function's description. While objects are moved, the old one's map is its new address. */
inline_ bool v8_read_shared(struct runtime_walk *r, u64 shared)
{
	struct v8_layout *at = &r->file.v8;

	if (!v8_is_object(shared) ||
	    bpf_probe_read_user(r->code, V8_SHARED_BYTES, (void *)(shared - 1)))
		return false;
	if (!v8_is_object(r->code[0]) &&
	    bpf_probe_read_user(r->code, V8_SHARED_BYTES, (void *)r->code[0]))
		return false;
	if (r->code[0] == r->shared_map)
		return true;
	if (v8_type_of_map(at, r->code[0]) != at->type_shared)
		return false;
	r->shared_map = r->code[0];
	return true;
}

/*
 * Identifies a function and its contents. A script's id is given once in a thread's V8, a
 * function's number once in a script. Built-in functions have a number in place of their code.
 */
inline_ u64 v8_check(struct runtime_walk *r)
{
	struct v8_layout *at = &r->file.v8;
	u64 script = runtime_of_code(r, at->script), data = runtime_of_code(r, at->data), id;
	u64 hash = walk_hash(0, runtime_of_code(r, at->name));

	hash = walk_hash(hash, runtime_half_of_code(r, at->literal));
	hash = walk_hash(hash, script);
	if (!v8_is_object(data))
		hash = walk_hash(hash, data);
	if (v8_is_object(script) && v8_member(script, at->script_id, &id))
		hash = walk_hash(hash, id);
	return walk_hash(hash, (u32)bpf_get_current_pid_tgid());
}

/* The number of a function; 0: it is none. */
inline_ u64 v8_number(struct walk *w, u64 function)
{
	struct runtime_walk *r = &w->runtime;
	u64 number = runtime_seen(r, function), shared;

	if (number)
		return number;
	if (!v8_member(function, r->file.v8.shared, &shared) || !v8_read_shared(r, shared))
		return 0;
	return runtime_number(w, function, shared, v8_check(r));
}

#define V8_FRAME_TYPES 64 /* more than there are */

/* The native frame stays; of V8's own code: its frame pointer is no guess. */
enum { V8_KEEP, V8_OWN };

/* The word for a frame with this frame pointer, or V8_KEEP, or V8_OWN. */
inline_ u64 v8_frame(struct walk *w, u64 fp, bool leaf, bool made)
{
	struct runtime_walk *r = &w->runtime;
	struct v8_layout *at = &r->file.v8;
	u64 unreadable = made ? runtime_mark_word(r, RUNTIME_MARK_FRAME) : V8_KEEP;
	u64 kind, function, number;

	if (!at->known)
		return made ? runtime_mark_word(r, RUNTIME_MARK_VERSION) : V8_KEEP;
	if (!unwind_read_block(w, fp - at->fp_function, &function) ||
	    !unwind_read_block(w, fp - at->fp_context, &kind))
		return unreadable;
	if (!v8_is_object(kind))
		return kind / 2 < V8_FRAME_TYPES ? V8_OWN : V8_KEEP;
	/* The leaf has not stored its function yet. */
	if (!v8_is_object(function) || (leaf && fp - at->fp_function < w->read.sp))
		return unreadable;
	number = v8_number(w, function);
	return number ? runtime_word(number, 0) : unreadable;
}

/* Replaces a frame, if it is V8's. */
inline_ void v8_replace(struct walk *w, u32 frame, u64 fp)
{
	u64 *frames = walk_frames(w), old, word;
	bool in_file;

	barrier_var(frame);
	if (frame >= STACK_MOST)
		return;
	old = frames[frame];
	in_file = old & STACK_IN_FILE;
	if (in_file &&
	    ((old & ~(STACK_IN_FILE | STACK_EXACT)) >> STACK_PLACE_BITS) != w->runtime.own_file)
		return; /* of another library */
	word = v8_frame(w, fp, frame == 0, !in_file);
	if (word == V8_KEEP)
		return;
	if (w->stack.guessed)
		w->stack.guessed--;
	if (word == V8_OWN)
		return;
	frames[frame] = word | (old & STACK_EXACT);
	if (!in_file)
		w->addresses--;
}

#define V8_STEPS 4 /* for each call */

/* Looks at several frames; not 0: these were the last. */
__noinline int v8_steps(void)
{
	struct walk *w = current_walk();
	struct runtime_walk *r;

	if (!runtimes || !w)
		return 1;
	for (int i = 0; i < V8_STEPS; i++) {
		u64 guess;
		u32 n;

		barrier_var(w); /* or addresses of all steps are kept on the stack */
		r = &w->runtime;
		n = r->given;
		barrier_var(n);
		if (n >= STACK_MOST || n >= r->guesses)
			return 1;
		r->given = n + 1;
		guess = r->guess[n];
		v8_replace(w, (u32)guess & (STACK_MOST - 1), guess >> RUNTIME_GUESS_SHIFT & ~7ULL);
	}
	return 0;
}

/* The hash of the frames, some of which were replaced. */
__noinline int v8_hash(void)
{
	struct walk *w = current_walk();
	u64 hash = 0;

	if (!runtimes || !w)
		return 0;
	for (u32 i = 0; i < STACK_MOST; i++) {
		if (i >= w->stack.depth)
			break;
		hash = walk_hash(hash, walk_frames(w)[i]);
	}
	w->hash = hash;
	return 0;
}

/* The walk has ended. */
inline_ void v8_end(void)
{
	int done = 0;

	for (u32 i = 0; i < STACK_MOST / V8_STEPS + 1 && !done; i++)
		done = v8_steps();
	v8_hash();
}

/* Kinds of strings: the low bits of their types. */
#define V8_STRINGS 0x80 /* types below are strings */
#define V8_ONE_BYTE 8
#define V8_UNCACHED 0x10 /* of external ones: no pointer to their characters */
#define V8_KIND(type) ((type)&7)
enum v8_string { V8_SEQUENTIAL = 0, V8_EXTERNAL = 2, V8_THIN = 5 };

struct v8_text {
	u64 chars; /* address; 0: not readable in one piece */
	u32 length;
	u32 width; /* of a character, in bytes */
};

inline_ void v8_text_of(struct v8_layout *at, u64 string, struct v8_text *text)
{
	u32 type = v8_type(at, string);

	text->chars = 0;
	text->length = 0;
	text->width = 0;
	if (type < V8_STRINGS && V8_KIND(type) == V8_THIN) {
		if (!v8_member(string, at->chars, &string))
			return;
		type = v8_type(at, string);
	}
	if (type >= V8_STRINGS || bpf_probe_read_user(&text->length, sizeof(text->length),
						      (void *)(string - 1 + at->length)))
		return;
	text->width = type & V8_ONE_BYTE ? 1 : 2;
	if (V8_KIND(type) == V8_SEQUENTIAL)
		text->chars = string - 1 + at->chars;
	else if (V8_KIND(type) != V8_EXTERNAL || type & V8_UNCACHED ||
		 !v8_member(string, at->chars + 8, &text->chars))
		text->chars = 0;
}

/* Copies a string's characters; the loader checks them. */
inline_ void v8_copy(struct v8_layout *at, u64 string, struct runtime_text *to, char *chars,
		     const u32 room)
{
	struct v8_text text;
	u64 all;
	u32 bytes;

	v8_text_of(at, string, &text);
	if (!text.chars)
		return;
	all = (u64)text.length * text.width;
	bytes = all > room ? room : (u32)all;
	barrier_var(bytes);
	if (bytes > room || bpf_probe_read_user(chars, bytes, (void *)text.chars))
		return;
	to->cut = all > room;
	to->bytes = (u16)bytes;
	to->kind = (u8)text.width;
}

/* Of the flags of a scope. */
#define V8_SCOPE_KIND(flags) ((flags)&15)
#define V8_SCOPE_SAVED_CLASS (1 << 10)
#define V8_SCOPE_FUNCTION_NAME (3 << 12)
#define V8_SCOPE_INFERRED_NAME (1 << 14)
#define V8_SCOPE_INLINE_NAMES 75 /* more are in a table */

/* Small integers are in the upper half. */
inline_ u32 v8_small(u64 object, u32 offset)
{
	u64 word = 0;

	v8_member(object, offset, &word);
	return (u32)(word >> 32);
}

/* Name and start of a function, from its scope. */
inline_ void v8_scope(struct v8_layout *at, u64 scope, struct runtime_code *to)
{
	u32 offset = at->scope_names, names, flags = 0;
	u64 text = 0;

	bpf_probe_read_user(&flags, sizeof(flags), (void *)(scope - 1 + at->scope_flags));
	names = v8_small(scope, at->scope_count);
	if (V8_SCOPE_KIND(flags) == at->module_scope)
		offset += 8;
	/* Names and properties of variables. */
	offset += names < V8_SCOPE_INLINE_NAMES ? names * 16 : 8 + names * 8;
	if (flags & V8_SCOPE_SAVED_CLASS)
		offset += 8;
	if (flags & V8_SCOPE_FUNCTION_NAME) {
		v8_member(scope, offset, &text);
		offset += 16;
	}
	if (v8_is_object(text))
		v8_copy(at, text, &to->name, to->name_text, RUNTIME_NAME);
	if (flags & V8_SCOPE_INFERRED_NAME) {
		if (!to->name.bytes && v8_member(scope, offset, &text))
			v8_copy(at, text, &to->name, to->name_text, RUNTIME_NAME);
		offset += 8;
	}
	to->source.start = v8_small(scope, at->scope_start ? at->scope_start : offset);
}

/* The name of a function, and where it starts. A separate function, for its stack. */
__noinline int v8_describe_name(u64 name)
{
	struct walk *w = current_walk();
	struct runtime_record *record;
	struct v8_layout *at;
	u32 type;

	/* Up to 6.7 the verifier checks this function even if it is not called. */
	if (!runtimes || !w || !v8_is_object(name))
		return 0;
	record = scratch(&runtime_record);
	if (!record)
		return 0;
	at = &w->runtime.file.v8;
	type = v8_type(at, name);
	if (type < V8_STRINGS)
		v8_copy(at, name, &record->code.name, record->code.name_text, RUNTIME_NAME);
	else if (type == at->type_scope)
		v8_scope(at, name, &record->code);
	return 0;
}

/* The script of a function: its name, and where its source is. */
__noinline int v8_describe_script(u64 script)
{
	struct walk *w = current_walk();
	struct runtime_record *record;
	struct runtime_code *code;
	struct v8_layout *at;
	struct v8_text text;
	u64 name, source;

	if (!runtimes || !w)
		return 0;
	record = scratch(&runtime_record);
	if (!record)
		return 0;
	at = &w->runtime.file.v8;
	if (v8_type(at, script) != at->type_script)
		return 0;
	code = &record->code;
	if (v8_member(script, at->script_name, &name))
		v8_copy(at, name, &code->file, code->file_text, RUNTIME_FILE_NAME);
	if (!v8_member(script, at->script_source, &source))
		return 0;
	v8_text_of(at, source, &text);
	code->source.script = script - 1;
	code->source.object = source;
	code->source.object_at = at->script_source;
	code->source.id_at = at->script_id;
	v8_member(script, at->script_id, &code->source.id);
	code->source.chars = text.chars;
	code->source.length = text.length;
	code->source.width = text.width;
	code->source.first_line = v8_small(script, at->script_line);
	return 0;
}

/* Copies names and script of a function into the record; returns the bytes of its source, -1: none.
 */
inline_ int v8_describe(struct runtime_walk *r, struct runtime_code *code, u64 shared)
{
	struct v8_layout *at = &r->file.v8;
	u64 bytes;
	u32 size;

	if (!v8_read_shared(r, shared))
		return -1;
	v8_describe_name(runtime_of_code(r, at->name));
	if (!v8_is_object(runtime_of_code(r, at->script)))
		return 0;
	v8_describe_script(runtime_of_code(r, at->script));
	/* Copies the source before the function if it is short: the process may end. */
	bytes = (u64)code->source.start * code->source.width;
	if (!code->source.chars || !bytes || bytes > RUNTIME_LINES)
		return 0;
	size = (u32)bytes;
	barrier_var(size);
	if (size > RUNTIME_LINES ||
	    bpf_probe_read_user(code->lines, size, (void *)code->source.chars))
		return 0;
	code->line_bytes = size;
	return (int)size;
}

#endif
