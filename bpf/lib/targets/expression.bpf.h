/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Expressions of the command line. The loader writes the instructions compiled from
 * them into two functions, before the program is loaded (src/program/pads.cpp).
 *
 * Contexts: wherever the targets are.
 */
#ifndef CORETAP_EXPRESSION_BPF_H
#define CORETAP_EXPRESSION_BPF_H

#include "lib/targets/expression.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/core/stopped.bpf.h"
#include "lib/syscall/syscall.bpf.h"
#include "lib/targets/target.bpf.h"
#include "lib/targets/traced_calls.bpf.h"

OPT(__u64, expression_uses);
OPT(bool, expression_filters); /* is there a filter? */
OPT(bool, expression_short);   /* is the filter EXPRESSION_SHORT? */
OPT(bool, expression_pairs);
/* By target number: are entries of this target remembered? */
const volatile __u8 expression_paired[EXPRESSION_PAIRED] = {};

/* r6: in, r7: out, r9: number of the target. The verifier removes the unused part of the room.
 */
#define EXPRESSION_PAD(which, size, in, out, id)                                               \
	({                                                                                     \
		register u64 in_ asm("r6") = (u64)(in);                                        \
		register u64 out_ asm("r7") = (u64)(out);                                      \
		register u64 id_ asm("r9") = (id);                                             \
		register u64 result_ asm("r0");                                                \
                                                                                               \
		asm volatile("r0 = %[mark]; r0 = %[pad]; .rept %[room]; goto +0; .endr"        \
			     : "=r"(result_), "+r"(in_), "+r"(out_), "+r"(id_)                 \
			     : [mark] "i"(EXPRESSION_MARK), [pad] "i"(which), [room] "i"(size) \
			     : "r1", "r2", "r3", "r4", "r5", "r8", "memory");                  \
		result_;                                                                       \
	})

/* Separate functions, so that the instructions have a stack frame to themselves. */
static __attribute__((noinline)) u64 expression_filter(struct expression_in *in, u64 id)
{
	return EXPRESSION_PAD(EXPRESSION_FILTER, EXPRESSION_ROOM, in, 0, id);
}

static __attribute__((noinline, unused)) u64 expression_values(struct expression_in *in,
							       struct expression_out *out, u64 id)
{
	return EXPRESSION_PAD(EXPRESSION_OUTPUT, EXPRESSION_ROOM, in, out, id);
}

/* Since 6.8 (41f6f64e6999). */
struct bpf_jmp_history_entry {
	u32 idx;
};

/*
 * Before 6.8 the verifier tracks bounds of a spilled scalar from branches, but not
 * that another function has branched on it: it treats different states as equal,
 * and drops instructions. A scalar written by two stores has no tracked bounds.
 */
inline_ void expression_forget(struct expression_in *in)
{
	volatile u8 *bytes = (void *)in;

	if (bpf_core_type_exists(struct bpf_jmp_history_entry))
		return;
	for (u32 i = 7; i < __builtin_offsetof(struct expression_in, comm); i += 8)
		bytes[i] = bytes[i];
}

/* An address as a scalar, for arithmetic in the instructions. */
inline_ u64 expression_address(void *p)
{
	u64 address = (u64)p;

	/* Negation makes the verifier treat the pointer as a scalar. */
	asm volatile("%0 = -%0; %0 = -%0" : "+r"(address));
	return address;
}

/* Inputs that are the same for all kinds of targets. */
inline_ void expression_inputs(struct expression_in *in, void *ctx)
{
	if (expression_uses & EXPRESSION_USES_CPU)
		in->cpu = bpf_get_smp_processor_id();
	if (expression_uses & EXPRESSION_USES_CONTEXT)
		in->context = expression_address(ctx);
	if (expression_uses & EXPRESSION_USES_TASK)
		in->task = bpf_get_current_task();
	if (expression_uses & EXPRESSION_USES_IDS) {
		in->pid = current_tgid();
		in->tid = current_tid();
	}
	if (expression_uses & EXPRESSION_USES_USER) {
		u64 ids = bpf_get_current_uid_gid();

		in->uid = (u32)ids;
		in->gid = ids >> 32;
	}
	if (expression_uses & EXPRESSION_USES_COMM)
		bpf_get_current_comm(in->comm, sizeof(in->comm));
	expression_forget(in);
}

/* Does the filter accept this event? False: the reason is counted. */
inline_ bool expression_wanted(struct expression_in *in, u64 id)
{
	u64 verdict;

	if (!expression_filters)
		return true;
	verdict = expression_short ?
			  EXPRESSION_PAD(EXPRESSION_SHORT, EXPRESSION_SHORT_ROOM, in, 0, id) :
			  expression_filter(in, id);
	if (verdict == EXPRESSION_YES)
		return true;
	count(verdict == EXPRESSION_FAULT ? LEDGER_UNJUDGED : LEDGER_FILTERED);
	return false;
}

inline_ bool is_paired(u64 id)
{
	if (!expression_pairs || id >= EXPRESSION_PAIRED)
		return false;
	barrier_var(id);
	return expression_paired[id & (EXPRESSION_PAIRED - 1)];
}

#endif
