/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names and lines of interpreted code, sent while the process has them: once for each code object.
 *
 * Contexts: as current_walk() allows; user memory is read without faults.
 */
#ifndef CORETAP_RUNTIME_CODE_BPF_H
#define CORETAP_RUNTIME_CODE_BPF_H

#include "lib/core/emit.bpf.h"
#include "lib/core/exchange.bpf.h"
#include "lib/core/text.bpf.h"
#include "lib/stack/walk.bpf.h"

struct runtime_record {
	u64 used; /* in use by a program, which one of another task may have preempted */
	struct runtime_code code;
};

SCRATCH(runtime_record, struct runtime_record);

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

inline_ void python_send(struct walk *w, struct runtime_record *r, u64 object, u64 number)
{
	struct runtime_walk *run = &w->runtime;
	struct python_layout *at = &run->file.python;
	struct runtime_code *code = &r->code;
	u64 one = 1;
	u32 bytes;

	__builtin_memset(code, 0, offsetof(struct runtime_code, lines));
	if (bpf_probe_read_user(run->code, 144, (void *)object))
		return;
	code->mark = RUNTIME_CODE;
	code->number = number;
	code->minor = at->minor;
	code->line = python_half_of_code(run, at->line);
	python_text(at, python_of_code(run, at->file), &code->file, code->file_text,
		    RUNTIME_FILE_NAME);
	python_text(at, python_of_code(run, at->name), &code->name, code->name_text, RUNTIME_NAME);
	bytes = python_lines(python_of_code(run, at->lines), code);
	barrier_var(bytes);
	if (bytes > RUNTIME_LINES)
		return;
	if (!bpf_ringbuf_output(&events, code, offsetof(struct runtime_code, lines) + bytes, 0))
		bpf_map_update_elem(&runtime_codes, &number, &one, BPF_ANY);
}

/* Sends what the last walk has met. A separate function, as the verifier needs it. */
__noinline int runtime_send(u32 i)
{
	struct walk *w = current_walk();
	struct runtime_record *r;

	/* Up to 6.7 the verifier checks this function even if it is not called. */
	if (!runtimes || !w || i >= RUNTIME_MEETS)
		return 0;
	r = scratch(&runtime_record);
	if (!r || exchange(&r->used, true))
		return 0; /* sent with the next stack */
	barrier_var(i);
	if (i < RUNTIME_MEETS)
		python_send(w, r, w->runtime.meet[i], w->runtime.meet_number[i]);
	*(volatile u64 *)&r->used = false;
	return 0;
}

inline_ void runtime_send_met(struct walk *w)
{
	for (u32 i = 0; i < RUNTIME_MEETS; i++) {
		if (i >= w->runtime.met)
			break;
		runtime_send(i);
	}
	w->runtime.met = 0;
}

#endif
