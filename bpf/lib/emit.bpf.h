/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records to user space: one ring buffer, zeroed records, wake-ups by volume. */
#ifndef CORETAP_EMIT_BPF_H
#define CORETAP_EMIT_BPF_H

#include "lib/stopped.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

/* The loader drains on a timer; it is woken earlier only when this much waits. */
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

/* Room for a record, zeroed, so that no kernel memory leaves with it; NULL is counted. */
inline_ void *emit_begin(u64 size)
{
	return emit_room(size, size);
}

inline_ void emit_end(void *record)
{
	u64 waiting = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);

	bpf_ringbuf_submit(record,
			   waiting >= emit_wake_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* For what the loader must look at while its process is there. */
inline_ void emit_end_now(void *record)
{
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
}

/* A whole record that lies elsewhere; its size need not be a constant. False: there is no room. */
inline_ bool emit_copy_if_room(void *record, u64 size)
{
	u64 waiting;

	if (tracing_stopped)
		return true;
	waiting = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
	return !bpf_ringbuf_output(&events, record, size,
				   waiting >= emit_wake_bytes ? BPF_RB_FORCE_WAKEUP :
								BPF_RB_NO_WAKEUP);
}

/* The same for an event: without room it is lost. */
inline_ bool emit_copy(void *record, u64 size)
{
	if (emit_copy_if_room(record, size))
		return true;
	count(LEDGER_LOST);
	return false;
}

/*
 * With --kernel-stack a struct stack follows the record. The ring buffer wants constant sizes, so
 * that without it the room for one is a constant 0: the verifier knows stack_on.
 */
OPT(bool, stack_on);

#define emit_begin_stack(record_size)                                               \
	(stack_on ? emit_room(record_size + sizeof(struct stack),                   \
			      record_size + 8 /* what comes before the frames */) : \
		    emit_begin(record_size))

#define emit_end_stack(ctx, record, record_size)                                             \
	do {                                                                                 \
		if (stack_on)                                                                \
			emit_stack(ctx, (struct stack *)((char *)(record) + (record_size))); \
		emit_end(record);                                                            \
	} while (0)

inline_ void emit_stack(void *ctx, struct stack *s)
{
	long bytes = bpf_get_stack(ctx, s->ip, sizeof(s->ip), 0);
	u32 most = stack_depth;

	/* The helper zeroes what it does not fill, also when it fails. */
	if (bytes <= 0)
		count(LEDGER_STACK_FAILED);
	else
		s->depth = (u32)bytes / 8 < most ? (u32)bytes / 8 : most;
}

#endif
