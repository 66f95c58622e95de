// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* brkstack: code paths that grow and shrink the heap. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/stack/cpu_walk.bpf.h"
#include "lib/stack/stack_counts.bpf.h"
#include "lib/stack/stack.bpf.h"
#include "lib/core/text.bpf.h"
#include "memory/brkstack.h"

STACK_COUNTS(1)

OPT(__u64, min_bytes);
OPT(bool, heaps_keyed); /* rows; otherwise only growth, by stack, for flame graphs */

TABLE(heaps, struct brkstack_key, struct brkstack_counts)

/* The current call of a task. */
struct heap_call {
	u64 known; /* brk: previous end of the heap, mmap: length; 0: none */
};

TASK_SLOT(struct heap_call);

inline_ int enter(u64 known)
{
	struct heap_call *c = wanted_slot();

	if (c)
		c->known = known;
	return 0;
}

inline_ int add_row(void *ctx, s64 grown, bool mapped)
{
	struct brkstack_key key = { .pid = current_tgid(), .mapped = mapped };
	struct brkstack_counts *row;

	bpf_get_current_comm(key.comm, sizeof(key.comm));
	key.user_stack = stack_of_user(ctx, 0);
	row = heaps_row(&key);
	if (!row)
		return 0;
	if (grown > 0) {
		__sync_fetch_and_add(&row->grows, 1);
		__sync_fetch_and_add(&row->grown_bytes, grown);
	} else {
		__sync_fetch_and_add(&row->shrinks, 1);
		__sync_fetch_and_add(&row->shrunk_bytes, -grown);
	}
	return 0;
}

inline_ int changed(void *ctx, s64 grown, bool mapped)
{
	struct stack_row entry = {};
	struct stack_party *p = &entry.party[0];

	if (!grown) /* a query of the heap's end, or a failed call */
		return 0;
	if ((u64)(grown < 0 ? -grown : grown) < min_bytes || (!heaps_keyed && grown < 0))
		return filtered();
	if (heaps_keyed)
		return add_row(ctx, grown, mapped);
	p->tgid = p->tid = current_tgid();
	party_name_current(p);
	p->user = stack_of_user(ctx, 0);
	return stack_add(&entry, NULL, grown);
}

/* The value recorded at the call's entry, cleared when read; 0: not seen. */
inline_ u64 known_at_entry(void)
{
	struct heap_call *c = current_slot(false);
	u64 known = c ? c->known : 0;

	if (c)
		c->known = 0;
	return known;
}

UNPREEMPTED(on_brk, "tracepoint/syscalls/sys_enter_brk", struct enter_ctx)
{
	return enter(BPF_CORE_READ(current_task(), mm, brk));
}

UNPREEMPTED(on_brk_return, "tracepoint/syscalls/sys_exit_brk", struct exit_ctx)
{
	u64 before = known_at_entry();

	return before ? changed(ctx, ctx->ret - before, false) : 0;
}

UNPREEMPTED(on_mmap, "tracepoint/syscalls/sys_enter_mmap", struct enter_ctx)
{
	return ctx->args[3] & MAP_ANONYMOUS ? enter(ctx->args[1]) : 0;
}

UNPREEMPTED(on_mmap_return, "tracepoint/syscalls/sys_exit_mmap", struct exit_ctx)
{
	u64 bytes = known_at_entry();

	return bytes && (ctx->ret > 0 || ctx->ret < -4095) ? changed(ctx, bytes, true) : 0;
}
