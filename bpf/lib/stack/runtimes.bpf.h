/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of the interpreter or runtime that a walk has met, by its kind.
 *
 * Contexts: as current_walk() allows; user memory is read without faults.
 */
#ifndef CORETAP_RUNTIMES_BPF_H
#define CORETAP_RUNTIMES_BPF_H

#include "lib/stack/php.bpf.h"
#include "lib/stack/python.bpf.h"
#include "lib/stack/ruby.bpf.h"
#include "lib/stack/v8.bpf.h"

/* The walk has met a file with a runtime. Called by walk_user(), as calls of it would be too deep.
 */
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
	r->shared_map = 0;
	__builtin_memset(r->seen, 0, sizeof(r->seen));
	r->bias = w->found.bias;
	r->own_file = w->found.file;
	walk_cannot_repeat(w); /* the frames' words are not the native stack's */
	index = w->found.runtime;
	file = bpf_map_lookup_elem(&runtime_files, &index);
	if (!file)
		return 0;
	r->file = *file;
	if (r->file.kind == RUNTIME_PYTHON)
		failed = python_begin(r);
	else if (r->file.kind == RUNTIME_PHP)
		failed = php_begin();
	else if (r->file.kind == RUNTIME_RUBY)
		failed = ruby_begin();
	else
		return 0;
	if (failed)
		runtime_add(r, runtime_mark_word(r, (u32)failed));
	runtime_end_segment(r, 0); /* unless the last one has ended */
	return 0;
}

/* The walk has ended: adds or replaces the frames whose places were not known before. */
__noinline int runtime_rest(void)
{
	struct walk *w = current_walk();

	if (!runtimes || !w)
		return 0;
	if (w->runtime.file.kind == RUNTIME_V8)
		v8_end();
	else
		runtime_emit(true);
	return 0;
}

#endif
