// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* extfrag: page allocations that fall back to another migrate type. */
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/aggregate/aggregate.bpf.h"
#include "memory/zone.bpf.h"
#include "memory/extfrag.h"

RECORD(extfrag_event);

OPT(bool, each_event);
OPT(bool, by_process);
OPT(bool, all_fallbacks);
OPT(__u32, least_order);

TABLE(fallbacks, struct extfrag_key, struct extfrag_count)

inline_ void tally(struct extfrag_fallback *fallback)
{
	struct extfrag_key key = { .fallback = *fallback };
	struct extfrag_count *c;

	if (by_process) {
		key.pid = current_tgid();
		bpf_get_current_comm(key.comm, sizeof(key.comm));
	}
	c = fallbacks_row(&key);
	if (c)
		__sync_fetch_and_add(&c->count, 1);
}

inline_ void emit(void *ctx, u64 pfn, struct extfrag_fallback *fallback)
{
	struct extfrag_event *e = emit_begin_stack(sizeof(*e));

	if (!e)
		return;
	e->head.time_ns = bpf_ktime_get_ns();
	e->pfn = pfn;
	e->fallback = *fallback;
	e->pageblock_order = pageblock_order;
	identify_current(&e->who);
	emit_end_stack(ctx, e, sizeof(*e));
}

/*
 * The classic tracepoint: others pass the struct page, from which a program can get neither
 * the page frame number nor the type of its page block, which determines change_ownership.
 */
SEC("tracepoint/kmem/mm_page_alloc_extfrag")
int on_fallback(struct trace_event_raw_mm_page_alloc_extfrag *ctx)
{
	struct extfrag_fallback fallback = {};
	u64 pfn = ctx->pfn;

	fallback.alloc_type = ctx->alloc_migratetype;
	fallback.fallback_type = ctx->fallback_migratetype;
	fallback.alloc_order = ctx->alloc_order;
	fallback.fallback_order = ctx->fallback_order;
	fallback.fragmenting = fallback.fallback_order < pageblock_order;
	fallback.change_ownership = !!ctx->change_ownership;
	if ((!fallback.fragmenting && !all_fallbacks) || fallback.alloc_order < least_order)
		return filtered();
	if (!keep_pfn(pfn) || !keep_current())
		return 0;
	if (each_event)
		emit(ctx, pfn, &fallback);
	else
		tally(&fallback);
	return 0;
}
