// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* drsnoop: allocations that had to reclaim memory directly. */
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/mm/mm.bpf.h"
#include "lib/core/program.bpf.h"
#include "memory/drsnoop.h"

RECORD(drsnoop_event);

struct reclaim {
	u64 start; /* 0: none in progress */
	u32 gfp;
	s32 order;
	u32 node;
	u32 kind;
};

TASK_SLOT(struct reclaim);

inline_ int begin(u32 kind, s32 order, u32 gfp, u32 node)
{
	struct reclaim *r = wanted_slot();

	if (!r)
		return 0;
	r->kind = kind;
	r->order = order;
	r->gfp = gfp;
	r->node = node;
	r->start = bpf_ktime_get_ns();
	return 0;
}

inline_ int end(void *ctx, u32 kind, u64 reclaimed)
{
	struct reclaim *r = current_slot(false);
	struct drsnoop_event *e;
	u64 now;

	/* No start: filtered, not tracked (counted there), or before the start of tracing. */
	if (!r || !r->start || r->kind != kind)
		return 0;
	now = bpf_ktime_get_ns();
	e = emit_begin_stack(sizeof(*e));
	if (e) {
		e->head.time_ns = r->start;
		e->latency_ns = since(r->start, now);
		e->reclaimed = reclaimed;
		e->gfp = r->gfp;
		e->order = r->order;
		e->node = r->node;
		e->kind = kind;
		identify_current(&e->who);
		emit_end_stack(ctx, e, sizeof(*e));
	}
	r->start = 0;
	return 0;
}

inline_ int begin_here(u64 *ctx, u32 args, u32 kind)
{
	s32 order;
	u32 gfp;

	reclaim_args(ctx, args, &order, &gfp);
	return begin(kind, order, gfp, bpf_get_numa_node_id());
}

PAIR(direct, mm_vmscan_direct_reclaim,
     begin_here(ctx, tp_args_mm_vmscan_direct_reclaim_begin, DRSNOOP_DIRECT),
     end(ctx, DRSNOOP_DIRECT, ctx[0]))
PAIR(memcg, mm_vmscan_memcg_reclaim,
     begin_here(ctx, tp_args_mm_vmscan_memcg_reclaim_begin, DRSNOOP_MEMCG),
     end(ctx, DRSNOOP_MEMCG, ctx[0]))
PAIR(node, mm_vmscan_node_reclaim, begin(DRSNOOP_NODE, (s32)ctx[1], (u32)ctx[2], (u32)ctx[0]),
     end(ctx, DRSNOOP_NODE, ctx[0]))
