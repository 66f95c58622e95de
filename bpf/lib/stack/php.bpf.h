/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of PHP 8, from its own structures (Zend/zend_compile.h, zend_types.h and zend_globals.h in
 * its sources), at their places among native frames.
 *
 * All frames of the thread are one list. A run of the interpreter's loop, execute_ex(), has the
 * frames up to one that is marked; functions written in C have frames, too. A function's number
 * depends on its name, class, file and first line: closures with the same code have one number.
 *
 * Contexts: as current_walk() allows; user memory is read without faults. x86-64.
 */
#ifndef CORETAP_PHP_BPF_H
#define CORETAP_PHP_BPF_H

#include "lib/core/task.bpf.h"
#include "lib/stack/runtime.bpf.h"

/* Words of a frame, struct _zend_execute_data, which no version of PHP 8 has changed. */
enum php_frame { PHP_OPCODE, PHP_FUNCTION = 3, PHP_FLAGS = 5, PHP_CALLER, PHP_FRAME_WORDS };

#define PHP_FIRST (1 << 17) /* ZEND_CALL_TOP: no other frame of this run of the loop is outside */

#define PHP_LINE 24 /* of an opcode */

#define PHP_INTERNAL 1 /* types of functions, their first byte */
#define PHP_USER 2
#define PHP_EVALUATED 4

/* Words of a function, in `code`. */
enum php_function {
	PHP_TYPE,
	PHP_NAME,
	PHP_CLASS,
	PHP_FILE,
	PHP_FIRST_LINE,
	PHP_TEXT,
	PHP_TEXT_BYTES
};

/* Copies it; false: it is none. */
inline_ bool php_read_function(struct runtime_walk *r, u64 function)
{
	u64 *code = r->code;
	u8 type;

	if (!function || bpf_probe_read_user(code, 24, (void *)function))
		return false;
	type = (u8)code[PHP_TYPE];
	if (type == PHP_INTERNAL) {
		code[PHP_FILE] = 0;
		code[PHP_FIRST_LINE] = 0;
		return true;
	}
	return (type == PHP_USER || type == PHP_EVALUATED) &&
	       !bpf_probe_read_user(&code[PHP_FILE], 16, (void *)(function + r->file.php.file));
}

/* The number of the function in `code`. */
inline_ u64 php_number(struct walk *w, u64 function)
{
	struct runtime_walk *r = &w->runtime;
	u64 *code = r->code, hash, text = code[PHP_NAME] ? code[PHP_NAME] : code[PHP_FILE];

	hash = walk_hash(walk_hash(0, code[PHP_NAME]), code[PHP_CLASS]);
	hash = walk_hash(walk_hash(hash, code[PHP_FILE]), (u32)code[PHP_FIRST_LINE]);
	/* Hash and length of a text: others may be made at its address. */
	if (!bpf_probe_read_user(&code[PHP_TEXT], 16, (void *)(text + 8)))
		hash = walk_hash(walk_hash(hash, code[PHP_TEXT]), code[PHP_TEXT_BYTES]);
	return runtime_number(w, function, function, hash);
}

/* Adds the frame at r->at, and steps to its caller's. Not 0: a mark, or RUNTIME_END. */
inline_ int php_step(struct walk *w)
{
	struct runtime_walk *r = &w->runtime;
	u64 frame = r->at, function, number, opcode;
	bool internal;
	u32 line = 0;

	if (!frame || r->frames >= STACK_MOST || r->segments >= RUNTIME_SEGMENTS)
		return RUNTIME_END;
	if (frame & 7 ||
	    bpf_probe_read_user(r->block, PHP_FRAME_WORDS * sizeof(u64), (void *)frame))
		return RUNTIME_MARK_UNREADABLE;
	r->at = r->block[PHP_CALLER];
	function = r->block[PHP_FUNCTION];
	if (!function) /* a mark between others */
		return 0;
	opcode = frame == r->c_frame ? r->opcode : r->block[PHP_OPCODE];
	if (!php_read_function(r, function))
		return RUNTIME_MARK_UNREADABLE;
	internal = (u8)r->code[PHP_TYPE] == PHP_INTERNAL;
	number = runtime_seen(r, function);
	if (!number)
		number = php_number(w, function);
	if (!internal && bpf_probe_read_user(&line, sizeof(line), (void *)(opcode + PHP_LINE)))
		line = 0;
	runtime_add(r, runtime_word(number, line > RUNTIME_PLACE_MASK ? 0 : line));
	if (!internal && r->block[PHP_FLAGS] & PHP_FIRST)
		runtime_end_segment(r, 0);
	return 0;
}

__noinline int php_steps(void)
{
	return runtime_some_steps(php_step);
}

/* While the loop itself runs, it has frame and opcode in registers. */
inline_ void php_registers(struct walk *w)
{
	struct runtime_walk *r = &w->runtime;
	u64 place = w->ip - r->bias;

	r->c_frame = 0;
	if (!w->exact || place < r->file.eval_begin || place >= r->file.eval_end)
		return;
#ifdef __TARGET_ARCH_x86
	struct pt_regs *regs = current_regs(current_task());

	r->c_frame = BPF_CORE_READ(regs, r14);
	r->opcode = BPF_CORE_READ(regs, r15);
#endif
}

/* Reads all frames of the thread. Not 0: a mark, which is the last one. A separate function, for
 * its stack. */
__noinline int php_begin(void)
{
	struct walk *w = current_walk();
	struct runtime_walk *r;
	struct php_layout *at;

	if (!runtimes || !w)
		return 0;
	r = &w->runtime;
	at = &r->file.php;
	if (!at->current)
		return RUNTIME_MARK_VERSION;
	if (!runtime_read(r->bias + r->file.runtime + at->current, &r->at))
		return RUNTIME_MARK_UNREADABLE;
	php_registers(w);
	return runtime_all_steps(php_steps);
}

/* Copies a string's characters (zend_string). */
inline_ void php_text(u64 string, struct runtime_text *text, char *to, const u32 room)
{
	u64 length = 0;

	if (string && runtime_read(string + 16, &length))
		runtime_copy_text(string + 24, length, text, to, room);
}

/* Copies the names of a function; returns the bytes of its class's, -1: it is none. */
inline_ int php_describe(struct runtime_walk *r, struct runtime_code *code, u64 function)
{
	struct runtime_text class = {};
	u64 name;

	if (!php_read_function(r, function))
		return -1;
	code->line = (u32)r->code[PHP_FIRST_LINE];
	php_text(r->code[PHP_FILE], &code->file, code->file_text, RUNTIME_FILE_NAME);
	php_text(r->code[PHP_NAME], &code->name, code->name_text, RUNTIME_NAME);
	if (!r->code[PHP_CLASS] || !runtime_read(r->code[PHP_CLASS] + 8, &name))
		return 0;
	__builtin_memset(code->lines, 0, PHP_CLASS_NAME);
	php_text(name, &class, code->lines, PHP_CLASS_NAME - 1);
	code->line_bytes = PHP_CLASS_NAME;
	return PHP_CLASS_NAME;
}

#endif
