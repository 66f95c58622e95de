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
#include "lib/stack/walk.bpf.h"

inline_ void runtime_describe(struct walk *w, struct runtime_record *r, u64 object, u64 number)
{
	struct runtime_code *code = &r->code;
	u64 one = 1;
	u32 bytes;

	__builtin_memset(code, 0, offsetof(struct runtime_code, lines));
	code->mark = RUNTIME_CODE;
	code->number = number;
	code->tgid = current_tgid();
	if ((number & RUNTIME_KIND_MASK) == RUNTIME_HOTSPOT)
		bytes = (u32)hotspot_describe(w, code, object);
	else if ((number & RUNTIME_KIND_MASK) == RUNTIME_V8)
		bytes = (u32)v8_describe(&w->runtime, code, object);
	else if ((number & RUNTIME_KIND_MASK) == RUNTIME_PHP)
		bytes = (u32)php_describe(&w->runtime, code, object);
	else if ((number & RUNTIME_KIND_MASK) == RUNTIME_RUBY)
		bytes = (u32)ruby_describe(&w->runtime, code, object);
	else
		bytes = (u32)python_describe(&w->runtime, code, object);
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
		runtime_describe(w, r, w->runtime.meet[i], w->runtime.meet_number[i]);
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
