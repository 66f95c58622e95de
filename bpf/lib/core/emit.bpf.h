/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records for user space: one ring buffer, zeroed records, wake-ups by volume.
 *
 * Contexts: all; in an NMI a record is lost if the buffer is locked. Counts LOST, STACK_FAILED.
 */
#ifndef CORETAP_EMIT_BPF_H
#define CORETAP_EMIT_BPF_H

#include "lib/core/stopped.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

/*
 * Puts the layout of a record into the program's BTF, from where it goes into recordings: otherwise
 * BTF has only what maps and functions refer to.
 */
#define RECORD(name) const struct name *const record_##name = 0 /* in .rodata, as the options */

/* The loader drains on a timer; it is woken earlier only when this many bytes are pending. */
OPT(__u64, emit_wake_bytes);

inline_ void *emit_room(u64 size, u64 zeroed)
{
	void *record = bpf_ringbuf_reserve(&events, size, 0);

	if (!record) {
		count(LEDGER_LOST);
		return NULL;
	}
	__builtin_memset(record, 0, zeroed);
	return record;
}

/* A zeroed record, so that no kernel memory leaks through it; NULL is counted. */
inline_ void *emit_begin(u64 size)
{
	return emit_room(size, size);
}

inline_ u64 emit_wakes(void)
{
	u64 waiting = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);

	return waiting >= emit_wake_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

inline_ int emit_end(void *record)
{
	bpf_ringbuf_submit(record, emit_wakes());
	return 0;
}

/* For records that the loader must handle while the process still exists. */
inline_ int emit_end_now(void *record)
{
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* Copies a whole record; its size need not be a constant. False: the buffer is full. */
inline_ bool emit_copy_if_room(void *record, u64 size)
{
	return tracing_stopped || !bpf_ringbuf_output(&events, record, size, emit_wakes());
}

/* The same for an event: without room it counts as lost. */
inline_ bool emit_copy(void *record, u64 size)
{
	if (emit_copy_if_room(record, size))
		return true;
	return counted(LEDGER_LOST);
}

/*
 * With --kernel-stack a struct stack follows the record. The ring buffer requires constant
 * sizes: as the verifier knows stack_on, the size without a stack is constant, too.
 */
OPT(bool, stack_on);

inline_ void *emit_begin_stack(const u64 size)
{
	return stack_on ? emit_room(size + sizeof(struct stack),
				    size + 8 /* the part before the frames */) :
			  emit_begin(size);
}

inline_ void emit_stack(void *ctx, struct stack *s)
{
	long bytes = bpf_get_stack(ctx, s->ip, sizeof(s->ip), 0);
	u32 most = stack_depth;

	/*
	 * The helper zeroes the rest of the buffer, also when it fails. At a breakpoint in user
	 * code there is no kernel stack: 0; before 5.18 (ee2a098851bf) an error.
	 */
	if (bytes < 0)
		count(LEDGER_STACK_FAILED);
	else
		s->depth = (u32)bytes / 8 < most ? (u32)bytes / 8 : most;
}

inline_ int emit_end_stack(void *ctx, void *record, const u64 size)
{
	if (stack_on)
		emit_stack(ctx, record + size);
	return emit_end(record);
}

#endif
