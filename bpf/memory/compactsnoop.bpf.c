// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* compactsnoop: runs of memory compaction. */
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "memory/compactsnoop.h"

/*
 * 5.17 changed the arguments from page frame numbers to the compact_control (abd4349ff9b8): 4 and
 * 5 arguments. Before, zone and order come from mm_compaction_suitable, which is called first.
 */
TP_ARGS(mm_compaction_begin);
#define HAS_CONTROL (tp_args_mm_compaction_begin == 4)

struct run {
	u64 start;         /* 0: none in progress */
	struct zone *zone; /* from mm_compaction_suitable */
	struct compactsnoop_event event;
};

TASK_SLOT(struct run);

inline_ u32 kind_of(struct compact_control *cc, s32 order)
{
	bool kthread = BPF_CORE_READ(current_task(), flags) & PF_KTHREAD;

	if (cc && BPF_CORE_READ_BITFIELD_PROBED(cc, direct_compaction))
		return COMPACT_DIRECT;
	if (cc && bpf_core_field_exists(cc->proactive_compaction) &&
	    BPF_CORE_READ_BITFIELD_PROBED(cc, proactive_compaction))
		return COMPACT_PROACTIVE;
	if (kthread)
		return order < 0 ? COMPACT_PROACTIVE : COMPACT_KCOMPACTD;
	return order < 0 ? COMPACT_MANUAL : COMPACT_DIRECT;
}

inline_ void describe_zone(struct compactsnoop_event *e, struct zone *z)
{
	u64 boost = BPF_CORE_READ(z, watermark_boost);
	u32 areas = bpf_core_field_size(z->free_area) / bpf_core_type_size(struct free_area);
	long free = 0;

	e->min = BPF_CORE_READ(z, _watermark[0]) + boost;
	e->low = BPF_CORE_READ(z, _watermark[1]) + boost;
	e->high = BPF_CORE_READ(z, _watermark[2]) + boost;
	bpf_core_read(&free, sizeof(free),
		      &z->vm_stat[bpf_core_enum_value(enum zone_stat_item, NR_FREE_PAGES)]);
	e->free = free > 0 ? free : 0;
	for (u32 i = 0; i < FREE_AREAS; i++) {
		u64 blocks = 0;

		if (i < areas)
			bpf_probe_read_kernel(
				&blocks, sizeof(blocks),
				(void *)&z->free_area + i * bpf_core_type_size(struct free_area) +
					bpf_core_field_offset(struct free_area, nr_free));
		e->free_blocks[i] = blocks;
	}
	e->node = BPF_CORE_READ(z, node);
	bpf_probe_read_kernel_str(e->zone, sizeof(e->zone), BPF_CORE_READ(z, name));
}

/* Only before 5.17. */
SEC("tp_btf/mm_compaction_suitable")
int on_suitable(u64 *ctx)
{
	struct run *r = wanted_slot();

	if (r && !r->start) {
		r->zone = (struct zone *)ctx[0];
		r->event.order = (s32)ctx[1];
	}
	return 0;
}

SEC("tp_btf/mm_compaction_begin")
int on_begin(u64 *ctx)
{
	struct compact_control *cc = NULL;
	struct zone *zone;
	struct run *r = wanted_slot();
	struct compactsnoop_event *e;

	if (!r)
		return 0;
	e = &r->event;
	if (HAS_CONTROL) {
		cc = (struct compact_control *)ARG(ctx, 0);
		zone = BPF_CORE_READ(cc, zone);
		e->order = BPF_CORE_READ(cc, order);
		e->migrate_scanned = BPF_CORE_READ(cc, total_migrate_scanned);
		e->free_scanned = BPF_CORE_READ(cc, total_free_scanned);
	} else {
		zone = r->zone;
		e->migrate_scanned = 0;
		e->free_scanned = 0;
	}
	e->migrated = 0;
	e->kind = kind_of(cc, e->order);
	if (zone)
		describe_zone(e, zone);
	r->start = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/mm_compaction_isolate_migratepages")
int on_isolate_migrate(u64 *ctx)
{
	struct run *r = current_slot(false);

	if (r && r->start)
		r->event.migrate_scanned += ctx[2];
	return 0;
}

SEC("tp_btf/mm_compaction_isolate_freepages")
int on_isolate_free(u64 *ctx)
{
	struct run *r = current_slot(false);

	if (r && r->start)
		r->event.free_scanned += ctx[2];
	return 0;
}

/* Reports all pages that a run moves; the first argument counts successes, on all kernels. */
SEC("tp_btf/mm_migrate_pages")
int on_migrate(u64 *ctx)
{
	struct run *r = current_slot(false);

	if (r && r->start)
		r->event.migrated += ctx[0];
	return 0;
}

SEC("tp_btf/mm_compaction_end")
int on_end(u64 *ctx)
{
	struct run *r = current_slot(false);
	struct compactsnoop_event *e;
	u64 now = bpf_ktime_get_ns();

	/* No start: filtered, not tracked (counted there), or before the start of tracing. */
	if (!r || !r->start)
		return 0;
	e = emit_begin_stack(sizeof(*e));
	if (e) {
		*e = r->event;
		e->head.time_ns = r->start;
		e->latency_ns = since(r->start, now);
		if (HAS_CONTROL) {
			struct compact_control *cc = (struct compact_control *)ARG(ctx, 0);

			e->migrate_scanned =
				since(e->migrate_scanned, BPF_CORE_READ(cc, total_migrate_scanned));
			e->free_scanned =
				since(e->free_scanned, BPF_CORE_READ(cc, total_free_scanned));
			e->sync = ARG(ctx, 3);
			e->status = (s32)ARG(ctx, 4);
		} else {
			e->sync = ARG(ctx, 4);
			e->status = (s32)ARG(ctx, 5);
		}
		identify_current(&e->who);
		emit_end_stack(ctx, e, sizeof(*e));
	}
	r->start = 0;
	r->zone = NULL;
	return 0;
}
