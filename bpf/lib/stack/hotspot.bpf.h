/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of HotSpot (the Java virtual machine): the code that it makes has no unwind tables and
 * mostly no frame pointers.
 *
 * A map of segments leads from an address to a CodeBlob, which says how large the frame of its code
 * is; while the code makes or drops the frame, its instructions show how much of it there is. The
 * interpreter's frames have a frame pointer, and the method below it. Offsets come from tables that
 * HotSpot has for debuggers.
 *
 * Contexts: as current_walk() allows; user memory is read without faults. x86-64.
 */
#ifndef CORETAP_HOTSPOT_BPF_H
#define CORETAP_HOTSPOT_BPF_H

#include "lib/stack/unwind.bpf.h"

MAP(ARRAY, hotspot_processes, HOTSPOT_PROCESSES, u32, struct hotspot_process);

/* The walk's process runs HotSpot. */
__noinline int hotspot_begin(void)
{
	struct walk *w = current_walk();
	struct hotspot_process *p;
	u32 index;

	if (!runtimes || !w)
		return 0;
	index = (u32)w->hotspot;
	p = bpf_map_lookup_elem(&hotspot_processes, &index);
	if (!p)
		return 0;
	w->jvm = *p;
	w->java = w->jvm.end - w->jvm.begin;
	return 0;
}

/* Below the interpreter's frame pointer, in bytes; above it are its caller's and its address. */
#define HOTSPOT_SENDER_SP 8
#define HOTSPOT_METHOD 24
#define HOTSPOT_BYTECODE 64

#define HOTSPOT_MOST_FRAME (1 << 20) /* bytes of one frame */
#define HOTSPOT_MOST_STUB 4096

/* Kinds of objects to be described, in the low bits of their addresses. */
enum hotspot_object { HOTSPOT_NMETHOD, HOTSPOT_METHOD_OBJECT, HOTSPOT_STUB, HOTSPOT_OBJECTS = 7 };

/* Is this a return address in the code that HotSpot makes, or in its library? */
inline_ bool hotspot_is_code(struct walk *w, u64 address)
{
	return address - 1 - w->jvm.begin < w->java ||
	       address - 1 - w->jvm.library < w->jvm.library_end - w->jvm.library;
}

#define HOTSPOT_HOPS 16 /* back to a block's first segment, which is at most 254 before */
#define HOTSPOT_FREE 255

/* The CodeBlob at an address; 0: none. */
__noinline u64 hotspot_blob(u64 pc)
{
	struct walk *w = current_walk();
	struct hotspot_heap *heap;
	u64 segment;
	u8 back = 0;

	if (!runtimes || !w)
		return 0;
	if (pc - w->jvm.heaps[0].begin < w->jvm.heaps[0].end - w->jvm.heaps[0].begin)
		heap = &w->jvm.heaps[0];
	else if (pc - w->jvm.heaps[1].begin < w->jvm.heaps[1].end - w->jvm.heaps[1].begin)
		heap = &w->jvm.heaps[1];
	else if (pc - w->jvm.heaps[2].begin < w->jvm.heaps[2].end - w->jvm.heaps[2].begin)
		heap = &w->jvm.heaps[2];
	else
		return 0;
	segment = (pc - heap->begin) >> (heap->shift & 63);
	for (int i = 0; i < HOTSPOT_HOPS; i++) {
		if (bpf_probe_read_user(&back, 1, (void *)(heap->segments + segment)) ||
		    back == HOTSPOT_FREE || back > segment)
			return 0;
		if (!back)
			return heap->begin + (segment << (heap->shift & 63)) + w->jvm.layout.block;
		segment -= back;
	}
	return 0;
}

/* How much of its frame a function has made. */
enum hotspot_frame {
	HOTSPOT_WHOLE,
	HOTSPOT_ALLOCATED, /* the caller's rbp is not stored yet */
	HOTSPOT_PUSHED,    /* rbp */
	HOTSPOT_NONE,
	HOTSPOT_UNKNOWN
};

/* A window of code: the instruction at the address is at this index. */
#define HOTSPOT_BEFORE 40
#define HOTSPOT_WINDOW 64

#define HOTSPOT_SUB 0xec
#define HOTSPOT_ADD 0xc4

/* The four bytes that end at this index. */
inline_ u32 hotspot_bytes_before(const u8 *code, u32 end)
{
	return code[end - 4] | code[end - 3] << 8 | code[end - 2] << 16 | (u32)code[end - 1] << 24;
}

#define HOTSPOT_STAYS 0xffffffff /* no such instruction ends there */

/* By how many bytes `sub` or `add` of a constant moves rsp that ends at this index. */
inline_ u32 hotspot_moved_sp(const u8 *code, u32 end, u8 how)
{
	u32 last = hotspot_bytes_before(code, end), opcode = hotspot_bytes_before(code, end - 3);

	/* Compared whole: for the verifier each branch doubles what follows. */
	barrier_var(last);
	barrier_var(opcode);
	if ((last & 0xffffff) == (0x8348 | how << 16) && last >> 24 < 128)
		return last >> 24;
	return (opcode & 0xffffff) == (0x8148 | how << 16) ? last : HOTSPOT_STAYS;
}

/* mov rbp, rsp */
inline_ bool hotspot_sets_bp(const u8 *code, u32 at)
{
	return code[at] == 0x48 && code[at + 1] == 0x8b && code[at + 2] == 0xec;
}

/* Before the frame of a compiled method is complete. */
inline_ int hotspot_prologue(const u8 *code, u32 frame)
{
#pragma unroll
	for (u32 end = 8; end <= HOTSPOT_BEFORE; end++) {
		u32 moved = hotspot_moved_sp(code, end, HOTSPOT_SUB);

		if (moved == frame - 16)
			return HOTSPOT_WHOLE;
		if (moved == frame - 8)
			return end == HOTSPOT_BEFORE ? HOTSPOT_ALLOCATED : HOTSPOT_WHOLE;
	}
	if (code[HOTSPOT_BEFORE - 1] == 0x55 &&
	    (hotspot_sets_bp(code, HOTSPOT_BEFORE) ||
	     hotspot_moved_sp(code, HOTSPOT_BEFORE + 4, HOTSPOT_SUB) == frame - 16 ||
	     hotspot_moved_sp(code, HOTSPOT_BEFORE + 7, HOTSPOT_SUB) == frame - 16))
		return HOTSPOT_PUSHED;
	if (code[HOTSPOT_BEFORE - 4] == 0x55 && hotspot_sets_bp(code, HOTSPOT_BEFORE - 3))
		return HOTSPOT_PUSHED;
	return HOTSPOT_NONE;
}

/* lea r10, [rip + n]; mov [r15 + n], r10; jmp: code behind a method, for a stop at its return. */
inline_ bool hotspot_is_poll(const u8 *code)
{
	const u8 *at = code + HOTSPOT_BEFORE;

	if (at[0] == 0x4c && at[1] == 0x8d && at[2] == 0x15)
		return at[7] == 0x4d && at[8] == 0x89 && at[9] == 0x97;
	if (at[0] == 0x4d && at[1] == 0x89 && at[2] == 0x97)
		return at[-7] == 0x4c && at[-6] == 0x8d && at[-5] == 0x15;
	return at[0] == 0xe9 && at[-7] == 0x4d && at[-6] == 0x89 && at[-5] == 0x97;
}

/* Where it is complete, or dropped: add rsp, n; pop rbp; perhaps a test; ret. */
inline_ int hotspot_epilogue(const u8 *code, u32 frame)
{
	if (code[HOTSPOT_BEFORE] == 0xc3 || hotspot_is_poll(code))
		return HOTSPOT_NONE;
	if (code[HOTSPOT_BEFORE] == 0x5d &&
	    hotspot_moved_sp(code, HOTSPOT_BEFORE, HOTSPOT_ADD) == frame - 16)
		return HOTSPOT_PUSHED;
#pragma unroll
	for (u32 at = HOTSPOT_BEFORE - 1; at >= HOTSPOT_BEFORE - 20; at--) {
		if (code[at] == 0xc3)
			return HOTSPOT_WHOLE;
		if (code[at] == 0x5d && hotspot_moved_sp(code, at, HOTSPOT_ADD) == frame - 16)
			return HOTSPOT_NONE;
	}
	return HOTSPOT_WHOLE;
}

/* The frame of the compiled method that runs at w->ip. */
__noinline int hotspot_leaf(u32 frame, bool complete)
{
	struct walk *w = current_walk();
	u8 *code;

	if (!runtimes || !w)
		return HOTSPOT_UNKNOWN;
	code = (u8 *)w->runtime.block; /* Python's frames have been read */
	if (bpf_probe_read_user(code, HOTSPOT_WINDOW, (void *)(w->ip - HOTSPOT_BEFORE)))
		return HOTSPOT_UNKNOWN;
	return complete ? hotspot_epilogue(code, frame) : hotspot_prologue(code, frame);
}

/* The frame of a stub that runs at w->ip. Stubs without a frame size may have a frame pointer. */
__noinline int hotspot_leaf_stub(u32 frame)
{
	struct walk *w = current_walk();
	u64 word;
	u32 code = 0;

	if (!runtimes || !w)
		return HOTSPOT_UNKNOWN;
	if (!unwind_read(w, w->sp, &word))
		return HOTSPOT_UNKNOWN;
	if (hotspot_is_code(w, word))
		return HOTSPOT_NONE;
	bpf_probe_read_user(&code, sizeof(code), (void *)w->ip);
	if (((code & 0xffffff) == 0xec8b48 || (code & 0xff) == 0x5d) &&
	    unwind_read(w, w->sp + 8, &word) && hotspot_is_code(w, word))
		return HOTSPOT_PUSHED;
	if (w->bp >= w->sp && w->bp - w->sp < HOTSPOT_MOST_STUB &&
	    unwind_read(w, w->bp + 8, &word) && hotspot_is_code(w, word)) {
		w->sp = w->bp;
		return HOTSPOT_PUSHED;
	}
	if (frame && unwind_read(w, w->sp + frame - 8, &word) && hotspot_is_code(w, word))
		return HOTSPOT_WHOLE;
	return HOTSPOT_UNKNOWN;
}

/* Adds a frame whose names were sent, or will be. */
inline_ void hotspot_found(struct walk *w, u64 object, u64 hash, u64 place)
{
	u64 number = runtime_number_of(w, RUNTIME_HOTSPOT, walk_hash(hash, object));

	if (place > RUNTIME_PLACE_MASK)
		place = 0;
	runtime_meet(&w->runtime, object, number);
	walk_found(w, runtime_word(number, place) | (w->exact && w->stack.depth ? STACK_EXACT : 0));
}

inline_ void hotspot_not_readable(struct walk *w)
{
	walk_found(w, runtime_mark_of(RUNTIME_HOTSPOT, RUNTIME_MARK_FRAME) |
			      (w->exact && w->stack.depth ? STACK_EXACT : 0));
}

/* Steps to the caller at this stack pointer, whose address is below it. */
inline_ int hotspot_return(struct walk *w, u64 cfa)
{
	if (!unwind_read(w, cfa - 8, &w->ip))
		return unwind_end(w, STACK_END_UNREADABLE);
	w->sp = cfa;
	w->exact = 0;
	w->bx_at = NOWHERE;
	return w->ip ? 0 : unwind_end(w, STACK_END_WHOLE);
}

inline_ u64 hotspot_word(struct runtime_walk *r, u32 offset, u32 bytes)
{
	u64 word = runtime_of_code(r, offset) >> (offset & 7) * 8;

	return bytes == 8 ? word : bytes == 4 ? (u32)word : (u16)word;
}

/* Identifies a method and where its bytecodes are; false: it is none. */
inline_ bool hotspot_method(struct walk *w, u64 method, u64 *hash, u64 *bytecodes, u32 *size)
{
	struct hotspot_layout *at = &w->jvm.layout;
	struct runtime_walk *r = &w->runtime;
	u64 const_method, entry, word;
	u32 from;

	if (!method || method & 7 || !runtime_read(method + at->const_method, &const_method) ||
	    !runtime_read(method + at->entry, &entry) ||
	    entry - w->jvm.interpreter >= w->jvm.interpreter_end - w->jvm.interpreter ||
	    bpf_probe_read_user(r->code, HOTSPOT_CONST_METHOD * 8,
				(void *)(const_method + at->constants)))
		return false;
	/* Beside the size are the indices of its names. */
	from = (u32)at->code_size - at->constants;
	word = runtime_of_code(r, from);
	*hash = walk_hash(walk_hash(walk_hash(0, const_method), r->code[0]), word);
	*bytecodes = const_method + at->const_method_bytes;
	*size = (u16)(word >> (from & 7) * 8);
	return true;
}

/* Steps out of the interpreter's frame. */
__noinline int hotspot_interpreted(void)
{
	struct walk *w = current_walk();
	u64 method, bytecode, hash, bytecodes, sp, bp;
	u32 size;

	if (!runtimes || !w)
		return 1;
	if (!unwind_bp(w))
		return unwind_end(w, STACK_END_UNREADABLE);
	bp = w->bp;
	if (bp < w->sp || bp - w->sp >= HOTSPOT_MOST_FRAME ||
	    !unwind_read(w, bp - HOTSPOT_METHOD, &method) ||
	    !hotspot_method(w, method, &hash, &bytecodes, &size) ||
	    !unwind_read(w, bp - HOTSPOT_SENDER_SP, &sp) || sp < bp + 16 ||
	    sp - bp >= HOTSPOT_MOST_FRAME) {
		/* Before it has made the frame. */
		hotspot_not_readable(w);
		if (!w->exact || !unwind_read(w, w->sp, &sp) || !hotspot_is_code(w, sp))
			return unwind_end(w, STACK_END_NO_CFI);
		return hotspot_return(w, w->sp + 8);
	}
	/* The leaf has it in a register. */
	bytecode = w->r13 - bytecodes;
	if ((!w->exact || w->stack.depth || bytecode >= size) &&
	    unwind_read(w, bp - HOTSPOT_BYTECODE, &bytecode))
		bytecode -= bytecodes;
	hotspot_found(w, method | HOTSPOT_METHOD_OBJECT, hash, bytecode < size ? bytecode + 1 : 0);
	if (!unwind_read(w, bp + 8, &w->ip))
		return unwind_end(w, STACK_END_UNREADABLE);
	unwind_bp_saved(w, bp);
	w->sp = sp;
	w->exact = 0;
	w->bx_at = NOWHERE;
	return w->ip ? 0 : unwind_end(w, STACK_END_WHOLE);
}

/* Steps out of the code by which native code calls Java: its frame pointer leads to the caller. */
inline_ int hotspot_entry(struct walk *w)
{
	u64 bp;

	if (!unwind_bp(w))
		return unwind_end(w, STACK_END_UNREADABLE);
	bp = w->bp;
	if (bp < w->sp || bp - w->sp >= HOTSPOT_MOST_FRAME)
		return unwind_end(w, STACK_END_BACKWARDS);
	unwind_bp_saved(w, bp);
	return hotspot_return(w, bp + 16);
}

/* Steps out of a frame of this form. */
inline_ int hotspot_leave(struct walk *w, enum hotspot_frame form, u32 frame)
{
	switch (form) {
	case HOTSPOT_WHOLE:
		unwind_bp_saved(w, w->sp + frame - 16);
		return hotspot_return(w, w->sp + frame);
	case HOTSPOT_ALLOCATED:
		return hotspot_return(w, w->sp + frame);
	case HOTSPOT_PUSHED:
		unwind_bp_saved(w, w->sp);
		return hotspot_return(w, w->sp + 16);
	case HOTSPOT_NONE:
		return hotspot_return(w, w->sp + 8);
	default:
		return unwind_end(w, STACK_END_NO_CFI);
	}
}

/* Steps out of compiled code, or a stub. */
__noinline int hotspot_compiled(void)
{
	struct walk *w = current_walk();
	struct runtime_walk *r;
	struct hotspot_layout *at;
	u64 blob, code, pc, deopt, hash;
	u32 bytes, frame;
	s32 complete;
	bool nmethod;
	int form;

	if (!runtimes || !w)
		return 1;
	r = &w->runtime;
	at = &w->jvm.layout;
	blob = hotspot_blob(w->ip - !w->exact);
	bytes = at->blob_bytes;
	barrier_var(bytes);
	if (!blob || bytes > sizeof(r->code) || bpf_probe_read_user(r->code, bytes, (void *)blob)) {
		hotspot_not_readable(w);
		return unwind_end(w, STACK_END_NO_CFI);
	}
	code = hotspot_word(r, at->code, at->code_is_offset ? 4 : 8);
	if (at->code_is_offset)
		code += blob;
	frame = (u32)hotspot_word(r, at->frame_size, 4) * 8;
	nmethod = hotspot_word(r, at->header_size, at->header_size_bytes) == at->nmethod;
	complete = at->frame_complete_bytes == 2 ? (s16)hotspot_word(r, at->frame_complete, 2) :
						   (s32)hotspot_word(r, at->frame_complete, 4);
	if (frame >= HOTSPOT_MOST_FRAME)
		frame = 0;
	if (!nmethod) {
		if (!w->exact)
			return frame ? hotspot_leave(w, HOTSPOT_WHOLE, frame) : unwind_guess(w);
		hotspot_found(w, blob | HOTSPOT_STUB, hotspot_word(r, at->name, 8), 0);
		if (!unwind_bp(w))
			return unwind_end(w, STACK_END_UNREADABLE);
		/* Some have a compiler's frame. */
		if (frame && complete >= 0)
			form = hotspot_leaf(frame, w->ip - code >= (u64)complete);
		else
			form = hotspot_leaf_stub(frame);
		return hotspot_leave(w, form, frame);
	}
	pc = w->ip;
	form = HOTSPOT_WHOLE;
	if (frame < 16)
		form = HOTSPOT_UNKNOWN;
	else if (w->exact)
		form = hotspot_leaf(frame, complete < 0 || pc - code >= (u64)complete);
	/* A frame that is to be run by the interpreter from now on: its place is in it. */
	deopt = hotspot_word(r, at->deopt, at->deopt_is_offset ? 4 : 8);
	if (at->deopt_is_offset)
		deopt += blob;
	if (pc == deopt && !unwind_read(w, w->sp + (u32)hotspot_word(r, at->original_pc, 4), &pc))
		pc = 0;
	hash = walk_hash(walk_hash(0, hotspot_word(r, at->method, 8)),
			 hotspot_word(r, at->compile_id, 4));
	hotspot_found(w, blob, hash, pc - code);
	return hotspot_leave(w, form, frame);
}

#define HOTSPOT_STEPS 8 /* for each call */

/* Records frames of HotSpot's code and steps to their caller's; not 0: it was the last one. */
__noinline int hotspot_steps(void)
{
	struct walk *w = current_walk();
	int ended = 0;
	u64 pc;

	if (!runtimes || !w)
		return 1;
	walk_cannot_repeat(w); /* the frames' words are not the native stack's */
	for (int i = 0; i < HOTSPOT_STEPS && !ended; i++) {
		pc = w->ip - !w->exact;
		if (pc - w->jvm.begin >= w->java)
			return 0;
		if (w->stack.depth >= stack_user_depth)
			return unwind_end(w, STACK_END_DEPTH);
		w->stack.guessed += w->guessed;
		w->guessed = 0;
		if (!w->exact && w->ip == w->jvm.entry_return)
			ended = hotspot_entry(w);
		else if (pc - w->jvm.interpreter < w->jvm.interpreter_end - w->jvm.interpreter)
			ended = hotspot_interpreted();
		else
			ended = hotspot_compiled();
	}
	return ended;
}

/* Copies a Symbol's characters. */
inline_ void hotspot_text(struct hotspot_layout *at, u64 symbol, struct runtime_text *to,
			  char *chars, const u32 room)
{
	u16 length = 0;

	if (!bpf_probe_read_user(&length, sizeof(length), (void *)(symbol + at->symbol_length)))
		runtime_copy_text(symbol + at->symbol_body, length, to, chars, room);
}

/* The same of the Symbol whose index in a ConstantPool is at this address. */
inline_ void hotspot_pool_text(struct hotspot_layout *at, u64 constants, u64 index_at,
			       struct runtime_text *to, char *chars, const u32 room)
{
	u64 symbol;
	u32 length = 0;
	u16 index = 0;

	bpf_probe_read_user(&index, sizeof(index), (void *)index_at);
	bpf_probe_read_user(&length, sizeof(length), (void *)(constants + at->pool_length));
	if (index && index < length &&
	    runtime_read(constants + at->pool_bytes + index * 8UL, &symbol))
		hotspot_text(at, symbol, to, chars, room);
}

/* The names of a method and its class. A separate function, for its stack. */
__noinline int hotspot_describe_method(u64 method)
{
	struct walk *w = current_walk();
	struct runtime_record *record;
	struct hotspot_layout *at;
	u64 const_method, constants, class, name, own;

	/* Up to 6.7 the verifier checks this function even if it is not called. */
	if (!runtimes || !w)
		return 0;
	record = scratch(&runtime_record);
	if (!record)
		return 0;
	at = &w->jvm.layout;
	if (!runtime_read(method + at->const_method, &const_method) ||
	    !runtime_read(const_method + at->constants, &constants) ||
	    !runtime_read(constants + at->pool_holder, &class) ||
	    !runtime_read(class + at->class_constants, &own) || own != constants)
		return 0;
	if (!runtime_read(class + at->class_name, &name))
		return 0;
	hotspot_text(at, name, &record->code.file, record->code.file_text, RUNTIME_FILE_NAME);
	hotspot_pool_text(at, constants, const_method + at->name_index, &record->code.name,
			  record->code.name_text, RUNTIME_NAME);
	return 0;
}

#define HOTSPOT_HAS_LINES 1 /* of a ConstMethod's flags */

/* The name of the source file and the table of lines, which is behind the bytecodes. */
__noinline int hotspot_describe_source(u64 method)
{
	struct walk *w = current_walk();
	struct runtime_record *record;
	struct hotspot_layout *at;
	struct runtime_text text = {};
	u64 const_method, constants, owner, begin, end;
	u32 size = 0, bytes;
	u16 flags = 0, code = 0;

	if (!runtimes || !w)
		return 0;
	record = scratch(&runtime_record);
	if (!record)
		return 0;
	at = &w->jvm.layout;
	if (!at->source_file || !runtime_read(method + at->const_method, &const_method) ||
	    !runtime_read(const_method + at->constants, &constants))
		return 0;
	__builtin_memset(record->code.lines, 0, HOTSPOT_SOURCE);
	owner = constants;
	if (at->source_in_class && !runtime_read(constants + at->pool_holder, &owner))
		return 0;
	hotspot_pool_text(at, constants, owner + at->source_file, &text, record->code.lines,
			  HOTSPOT_SOURCE);
	record->code.lines[HOTSPOT_SOURCE - 1] = 0;
	bpf_probe_read_user(&flags, sizeof(flags), (void *)(const_method + at->const_method_flags));
	bpf_probe_read_user(&size, sizeof(size), (void *)(const_method + at->const_method_size));
	bpf_probe_read_user(&code, sizeof(code), (void *)(const_method + at->code_size));
	begin = const_method + at->const_method_bytes + code;
	end = const_method + size * 8UL;
	if (!(flags & HOTSPOT_HAS_LINES) || end <= begin)
		return HOTSPOT_SOURCE;
	bytes = end - begin > HOTSPOT_LINES ? HOTSPOT_LINES : (u32)(end - begin);
	barrier_var(bytes);
	if (bytes > HOTSPOT_LINES ||
	    bpf_probe_read_user(record->code.lines + HOTSPOT_SOURCE, bytes, (void *)begin))
		return HOTSPOT_SOURCE;
	return (int)(HOTSPOT_SOURCE + bytes);
}

#define HOTSPOT_STUB_NAME 64

/* Copies names of a method or stub into the record; returns the bytes of its source, -1: none. */
inline_ int hotspot_describe(struct walk *w, struct runtime_code *code, u64 object)
{
	struct hotspot_layout *at = &w->jvm.layout;
	u64 blob = object & ~(u64)HOTSPOT_OBJECTS, name;
	long bytes;

	code->minor = (u8)at->version;
	if ((object & HOTSPOT_OBJECTS) == HOTSPOT_METHOD_OBJECT) {
		code->hotspot.method = blob;
	} else if ((object & HOTSPOT_OBJECTS) == HOTSPOT_STUB) {
		if (!runtime_read(blob + at->name, &name))
			return -1;
		bytes = bpf_probe_read_user_str(code->name_text, HOTSPOT_STUB_NAME, (void *)name);
		if (bytes <= 1)
			return -1;
		code->name.bytes = (u16)(bytes - 1);
		code->name.kind = RUNTIME_UTF8;
		return 0;
	} else {
		code->hotspot.nmethod = blob;
		if (!runtime_read(blob + at->method, &code->hotspot.method) ||
		    bpf_probe_read_user(&code->hotspot.compile_id, 4,
					(void *)(blob + at->compile_id)))
			return -1;
		if (at->code_is_offset) {
			bpf_probe_read_user(&code->hotspot.code, 4, (void *)(blob + at->code));
			code->hotspot.code = blob + (u32)code->hotspot.code;
		} else {
			runtime_read(blob + at->code, &code->hotspot.code);
		}
	}
	hotspot_describe_method(code->hotspot.method);
	if (!code->name.bytes)
		return -1;
	bytes = hotspot_describe_source(code->hotspot.method);
	code->line_bytes = (u32)bytes;
	return (int)bytes;
}

#endif
