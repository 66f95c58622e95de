// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* drsnoop: allocations that had to reclaim memory themselves. */
#include "lib/emit.bpf.h"
#include "lib/filter.bpf.h"
#include "lib/mm.bpf.h"
#include "memory/drsnoop.h"

struct reclaim {
	u64 start; /* 0: none under way */
	u32 gfp;
	s32 order;
	u32 node;
	u32 kind;
};

TASK_SLOT(struct reclaim);

inline_ int begin(u32 kind, s32 order, u32 gfp, u32 node)
{
	struct reclaim *r;

	if (!keep_current())
		return 0;
	r = current_slot(true);
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

	/* No begin: filtered, not tracked (counted there), or before tracing began. */
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

inline_ u32 this_node(void)
{
	return bpf_get_numa_node_id();
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int on_direct_begin(u64 *ctx)
{
	s32 order;
	u32 gfp;

	reclaim_args(ctx, tp_args_mm_vmscan_direct_reclaim_begin, &order, &gfp);
	return begin(DRSNOOP_DIRECT, order, gfp, this_node());
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int on_direct_end(u64 *ctx)
{
	return end(ctx, DRSNOOP_DIRECT, ctx[0]);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int on_memcg_begin(u64 *ctx)
{
	s32 order;
	u32 gfp;

	reclaim_args(ctx, tp_args_mm_vmscan_memcg_reclaim_begin, &order, &gfp);
	return begin(DRSNOOP_MEMCG, order, gfp, this_node());
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int on_memcg_end(u64 *ctx)
{
	return end(ctx, DRSNOOP_MEMCG, ctx[0]);
}

SEC("tp_btf/mm_vmscan_node_reclaim_begin")
int on_node_begin(u64 *ctx)
{
	return begin(DRSNOOP_NODE, (s32)ctx[1], (u32)ctx[2], (u32)ctx[0]);
}

SEC("tp_btf/mm_vmscan_node_reclaim_end")
int on_node_end(u64 *ctx)
{
	return end(ctx, DRSNOOP_NODE, ctx[0]);
}
