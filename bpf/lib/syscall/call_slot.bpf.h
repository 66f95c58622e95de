/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A task's current system call, from its classic tracepoint at the entry to that at the exit.
 *
 * Contexts: the running task, outside of interrupts, at system calls.
 */
#ifndef CORETAP_CALL_SLOT_BPF_H
#define CORETAP_CALL_SLOT_BPF_H

#include "lib/core/filter.bpf.h"
#include "lib/core/text.bpf.h"

/*
 * The TASK_SLOT of a slot_type that begins with u64 start (0: no call in progress).
 * The program sets it last, in wanted_slot().
 * call_ends(): the slot of the call that ends, its start in *start; NULL: it was
 * filtered, not tracked (counted there), or began before tracing.
 */
#define CALL_SLOT(slot_type)                        \
	TASK_SLOT(slot_type)                        \
	inline_ slot_type *call_ends(u64 *start)    \
	{                                           \
		slot_type *c = current_slot(false); \
                                                    \
		if (!c || !c->start)                \
			return NULL;                \
		*start = c->start;                  \
		c->start = 0;                       \
		return c;                           \
	}

/* The program on_NAME at the entry of this call; `result` is its return value. The
 * kernel rejects a program that reads more arguments than the call has. */
#define ON_ENTRY(name, result)                                                           \
	UNPREEMPTED(on_##name, "tracepoint/syscalls/sys_enter_" #name, struct enter_ctx) \
	{                                                                                \
		return result;                                                           \
	}

#endif
