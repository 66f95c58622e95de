// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* allocslower: page allocations that take long, and what they wait for. */
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/mm/mm.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/core/since.bpf.h"
#include "memory/allocslower.h"

RECORD(allocslower_event);

OPT(__u64, min_ns);

/*
 * The slow path of a task. It starts with the first step and ends with the event of the allocation
 * (mm_page_alloc, which failures have, too). Allocations of reclaim itself come within a run, and
 * those of interrupts have other flags.
 */
struct slow_path {
	u64 start; /* 0: none in progress */
	u64 run;   /* start of the run of compaction or reclaim; 0: none in progress */
	u32 gfp;
	u32 order;
	struct allocslower_parts parts;
};

TASK_SLOT(struct slow_path);

/* Slow paths in progress: without any, allocations need not look for theirs. */
volatile __u64 slow_paths = 0;

inline_ struct slow_path *path_now(void)
{
	struct slow_path *p;

	if (!slow_paths)
		return NULL;
	p = current_slot(false);
	return p && p->start ? p : NULL;
}

inline_ void path_ends(struct slow_path *p)
{
	p->start = 0;
	p->run = 0;
	__sync_fetch_and_add(&slow_paths, -1);
}

/* The path of an allocation with this order and flags, at one of its steps. */
inline_ struct slow_path *path_of(u32 order, u32 gfp, bool may_be_nested)
{
	struct slow_path *p = path_now();

	if (p) {
		if (p->order == order && p->gfp == gfp && !p->run)
			return p;
		if (may_be_nested || p->run)
			return NULL;
		/* Tasks have one after the other: the end was not seen. */
		count(LEDGER_UNMATCHED);
		path_ends(p);
	}
	/* While programs are attached, the end might be missed. */
	if (!tracing_since || tracing_stopped)
		return NULL;
	p = current_slot(true);
	if (!p)
		return NULL;
	__builtin_memset(&p->parts, 0, sizeof(p->parts));
	p->order = order;
	p->gfp = gfp;
	p->run = 0;
	p->start = bpf_ktime_get_ns();
	__sync_fetch_and_add(&slow_paths, 1);
	return p;
}

inline_ void add_step(struct slow_path *p, u32 kind, u64 ns, u32 pages, u32 result)
{
	u32 n = p->parts.steps++;
	struct allocslower_step *s;

	if (n >= ALLOC_STEPS)
		return;
	barrier_var(n);
	s = &p->parts.step[n & (ALLOC_STEPS - 1)];
	s->ns = ns;
	s->pages = pages;
	s->kind = kind;
	s->result = result;
	s->times = 1;
}

inline_ int run_begins(void)
{
	struct slow_path *p = path_now();

	if (p && !p->run)
		p->run = bpf_ktime_get_ns();
	return 0;
}

/* -> its time */
inline_ u64 run_ends(struct slow_path *p)
{
	u64 ns = since(p->run, bpf_ktime_get_ns());

	p->run = 0;
	return ns;
}

/* The kernel wakes it for each zone. Without flags it does so for another purpose. */
TRACING(on_kswapd, "tp_btf/mm_vmscan_wakeup_kswapd")
{
	struct allocslower_step *last;
	struct slow_path *p;
	u32 n;

	if (!(u32)ctx[3])
		return 0;
	p = path_of((u32)ctx[2], (u32)ctx[3], true);
	if (!p)
		return 0;
	p->parts.wakeups++;
	n = p->parts.steps - 1;
	if (n < ALLOC_STEPS) {
		barrier_var(n);
		last = &p->parts.step[n & (ALLOC_STEPS - 1)];
		if (last->kind == ALLOC_KSWAPD) {
			last->times++;
			return 0;
		}
	}
	add_step(p, ALLOC_KSWAPD, 0, 0, 0);
	return 0;
}

/* ---- compaction ---- */

TRACING(on_compaction, "tp_btf/mm_compaction_try_to_compact_pages")
{
	path_of((u32)ctx[0], (u32)ctx[1], false);
	return 0;
}

PROGRAM(on_zone_begin, "tp_btf/mm_compaction_begin", run_begins())

/* 5.17 replaced page frame numbers by the compact_control (abd4349ff9b8): one argument less. */
TP_ARGS(mm_compaction_end);

inline_ u32 result_of(s32 status)
{
#define IS(name) (status == (s32)bpf_core_enum_value(enum compact_result, COMPACT_##name))
	if (IS(SUCCESS))
		return ALLOC_SUCCESS;
	if (IS(COMPLETE))
		return ALLOC_COMPLETE;
	if (IS(PARTIAL_SKIPPED))
		return ALLOC_PARTIAL_SKIPPED;
	if (IS(CONTENDED))
		return ALLOC_CONTENDED;
	return ALLOC_RESULT_OTHER;
#undef IS
}

TRACING(on_zone_end, "tp_btf/mm_compaction_end")
{
	struct slow_path *p = path_now();
	bool sync;
	s32 status;
	u64 ns;

	if (!p || !p->run)
		return 0;
	if (tp_args_mm_compaction_end == 5) {
		sync = ARG(ctx, 3);
		status = (s32)ARG(ctx, 4);
	} else {
		sync = ARG(ctx, 4);
		status = (s32)ARG(ctx, 5);
	}
	ns = run_ends(p);
	if (sync) {
		p->parts.syncs++;
		p->parts.sync_ns += ns;
	} else {
		p->parts.asyncs++;
		p->parts.async_ns += ns;
	}
	add_step(p, sync ? ALLOC_SYNC : ALLOC_ASYNC, ns, 0, result_of(status));
	return 0;
}

/* ---- reclaim ---- */

TRACING(on_reclaim_begin, "tp_btf/mm_vmscan_direct_reclaim_begin")
{
	s32 order;
	u32 gfp;

	reclaim_args(ctx, tp_args_mm_vmscan_direct_reclaim_begin, &order, &gfp);
	path_of(order, gfp, false);
	return run_begins();
}

TRACING(on_reclaim_end, "tp_btf/mm_vmscan_direct_reclaim_end")
{
	struct slow_path *p = path_now();
	u64 ns;

	if (!p || !p->run)
		return 0;
	ns = run_ends(p);
	p->parts.reclaims++;
	p->parts.reclaim_ns += ns;
	p->parts.reclaimed += ctx[0];
	add_step(p, ALLOC_RECLAIM, ns, ctx[0], 0);
	return 0;
}

/* ---- */

inline_ int victim_marked(void)
{
	struct slow_path *p = path_now();

	if (!p || p->run)
		return 0;
	p->parts.victims++;
	add_step(p, ALLOC_OOM, 0, 0, 0);
	return 0;
}

PROGRAM(on_victim, "tp_btf/mark_victim", victim_marked())

inline_ int show(void *ctx, struct slow_path *p, u64 total_ns, bool failed)
{
	struct allocslower_event *e = emit_begin_stack(sizeof(*e));

	if (!e)
		return 0;
	e->head.time_ns = p->start;
	e->total_ns = total_ns;
	e->gfp = p->gfp;
	e->order = p->order;
	e->failed = failed;
	__builtin_memcpy(&e->parts, &p->parts, sizeof(e->parts));
	identify_current(&e->who);
	return emit_end_stack(ctx, e, sizeof(*e));
}

TRACING(on_alloc, "tp_btf/mm_page_alloc")
{
	struct slow_path *p = path_now();
	u64 total_ns;

	if (!p || p->run || p->order != (u32)ctx[1] || p->gfp != (u32)ctx[2])
		return 0;
	total_ns = since(p->start, bpf_ktime_get_ns());
	if (total_ns < min_ns)
		count(LEDGER_FILTERED);
	else if (keep_current())
		show(ctx, p, total_ns, !ctx[0]);
	path_ends(p);
	return 0;
}
