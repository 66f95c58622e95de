// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* compactsnoop: runs of memory compaction. */
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "memory/compactsnoop.h"

RECORD(compactsnoop_event);

/*
 * 5.17 changed the arguments from page frame numbers to the compact_control (abd4349ff9b8): 4 and
 * 5 arguments. Before, zone and order come from mm_compaction_suitable, which is called first.
 */
TP_ARGS(mm_compaction_begin);
#define HAS_CONTROL (tp_args_mm_compaction_begin == 4)

struct run {
	u64 start; /* 0: none in progress */
	u64 migrated, migrate_scanned, free_scanned;
	u64 min, low, high, free;
	u64 free_blocks[FREE_AREAS];
	struct zone *zone; /* from mm_compaction_suitable */
	s32 order;
	u32 node;
	u32 kind;
	u32 pad;
	char name[16];
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

inline_ void describe_zone(struct run *r, struct zone *z)
{
	u64 boost = BPF_CORE_READ(z, watermark_boost);
	u32 areas = bpf_core_field_size(z->free_area) / bpf_core_type_size(struct free_area);
	long free = 0;

	r->min = BPF_CORE_READ(z, _watermark[0]) + boost;
	r->low = BPF_CORE_READ(z, _watermark[1]) + boost;
	r->high = BPF_CORE_READ(z, _watermark[2]) + boost;
	bpf_core_read(&free, sizeof(free),
		      &z->vm_stat[bpf_core_enum_value(enum zone_stat_item, NR_FREE_PAGES)]);
	r->free = free > 0 ? free : 0;
	for (u32 i = 0; i < FREE_AREAS; i++) {
		u64 blocks = 0;

		if (i < areas)
			bpf_probe_read_kernel(
				&blocks, sizeof(blocks),
				(void *)&z->free_area + i * bpf_core_type_size(struct free_area) +
					bpf_core_field_offset(struct free_area, nr_free));
		r->free_blocks[i] = blocks;
	}
	r->node = BPF_CORE_READ(z, node);
	bpf_probe_read_kernel_str(r->name, sizeof(r->name), BPF_CORE_READ(z, name));
}

/* Only before 5.17. */
TRACING(on_suitable, "tp_btf/mm_compaction_suitable")
{
	struct run *r = wanted_slot();

	if (r && !r->start) {
		r->zone = (struct zone *)ctx[0];
		r->order = (s32)ctx[1];
	}
	return 0;
}

TRACING(on_begin, "tp_btf/mm_compaction_begin")
{
	struct compact_control *cc = NULL;
	struct zone *zone;
	struct run *r = wanted_slot();

	if (!r)
		return 0;
	if (HAS_CONTROL) {
		cc = (struct compact_control *)ARG(ctx, 0);
		zone = BPF_CORE_READ(cc, zone);
		r->order = BPF_CORE_READ(cc, order);
		r->migrate_scanned = BPF_CORE_READ(cc, total_migrate_scanned);
		r->free_scanned = BPF_CORE_READ(cc, total_free_scanned);
	} else {
		zone = r->zone;
		r->migrate_scanned = 0;
		r->free_scanned = 0;
	}
	r->migrated = 0;
	r->kind = kind_of(cc, r->order);
	if (zone)
		describe_zone(r, zone);
	r->start = bpf_ktime_get_ns();
	return 0;
}

TRACING(on_isolate_migrate, "tp_btf/mm_compaction_isolate_migratepages")
{
	struct run *r = current_slot(false);

	if (r && r->start)
		r->migrate_scanned += ctx[2];
	return 0;
}

TRACING(on_isolate_free, "tp_btf/mm_compaction_isolate_freepages")
{
	struct run *r = current_slot(false);

	if (r && r->start)
		r->free_scanned += ctx[2];
	return 0;
}

/* Reports all pages that a run moves; the first argument counts successes, on all kernels. */
TRACING(on_migrate, "tp_btf/mm_migrate_pages")
{
	struct run *r = current_slot(false);

	if (r && r->start)
		r->migrated += ctx[0];
	return 0;
}

TRACING(on_end, "tp_btf/mm_compaction_end")
{
	struct run *r = current_slot(false);
	struct compactsnoop_event *e;
	u64 now = bpf_ktime_get_ns();

	/* No start: filtered, not tracked (counted there), or before the start of tracing. */
	if (!r || !r->start)
		return 0;
	e = emit_begin_stack(sizeof(*e));
	if (e) {
		e->head.time_ns = r->start;
		e->latency_ns = since(r->start, now);
		e->min = r->min;
		e->low = r->low;
		e->high = r->high;
		e->free = r->free;
		__builtin_memcpy(e->free_blocks, r->free_blocks, sizeof(e->free_blocks));
		__builtin_memcpy(e->zone, r->name, sizeof(e->zone));
		e->migrated = r->migrated;
		if (HAS_CONTROL) {
			struct compact_control *cc = (struct compact_control *)ARG(ctx, 0);

			e->migrate_scanned =
				since(r->migrate_scanned, BPF_CORE_READ(cc, total_migrate_scanned));
			e->free_scanned =
				since(r->free_scanned, BPF_CORE_READ(cc, total_free_scanned));
			e->sync = ARG(ctx, 3);
			e->status = (s32)ARG(ctx, 4);
		} else {
			e->migrate_scanned = r->migrate_scanned;
			e->free_scanned = r->free_scanned;
			e->sync = ARG(ctx, 4);
			e->status = (s32)ARG(ctx, 5);
		}
		e->order = r->order;
		e->node = r->node;
		e->kind = r->kind;
		identify_current(&e->who);
		emit_end_stack(ctx, e, sizeof(*e));
	}
	r->start = 0;
	r->zone = NULL;
	return 0;
}
