// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* vmscan: memory reclaim, by cause. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/mm/mm.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/core/since.bpf.h"
#include "memory/vmscan.h"

OPT(bool, distributed);
OPT(bool, by_pages);
OPT(bool, by_shrinker);
OPT(bool, lru_gen); /* the multi-generational LRU is on */

SUMS(reclaims, struct vmscan_sums)
HISTOGRAM(durations, struct vmscan_key)
TABLE(pages, struct vmscan_pages_key, struct vmscan_pages)
TABLE(shrinkers, struct vmscan_shrinker_key, struct vmscan_shrinker)

/* The current operations of a task. Slabs are shrunk within reclaim, so both can be active. */
struct under_way {
	u64 reclaim, slab; /* start times; 0: not in progress */
	u64 kswapd_ns;     /* CPU time already counted, or from before tracing */
	u64 kind;          /* of the reclaim */
};

TASK_SLOT(struct under_way);

#define ADD(counter, n) SUM_ADD(reclaims, counter, n)

inline_ u64 *start_of(struct under_way *w, u32 kind)
{
	return kind == VMSCAN_SLAB ? &w->slab : &w->reclaim;
}

inline_ int begin(u32 kind)
{
	struct under_way *w = wanted_slot();
	u64 *start;

	if (!w)
		return 0;
	start = start_of(w, kind);
	if (end_missed(*start))
		count(LEDGER_UNMATCHED);
	if (kind != VMSCAN_SLAB)
		w->kind = kind;
	*start = bpf_ktime_get_ns();
	return 0;
}

/* Names of shrinkers: 6.0 (e33c267ab70d), with CONFIG_SHRINKER_DEBUG. */
static __noinline int shrinker_ends(struct shrinker *shrinker, u64 freed, u64 ns)
{
	struct vmscan_shrinker_key key = {};
	struct vmscan_shrinker *row;

	key.function = (u64)BPF_CORE_READ(shrinker, scan_objects);
	if (bpf_core_field_exists(shrinker->name))
		bpf_probe_read_kernel_str(key.name, sizeof(key.name),
					  BPF_CORE_READ(shrinker, name));
	row = shrinkers_row(&key);
	if (!row)
		return 0;
	__sync_fetch_and_add(&row->runs, 1);
	__sync_fetch_and_add(&row->freed, freed);
	__sync_fetch_and_add(&row->time_ns, ns);
	return 0;
}

inline_ int end(u32 kind, u64 freed, struct shrinker *shrinker)
{
	struct under_way *w = current_slot(false);
	struct vmscan_key key = { .kind = kind };
	u64 *start, ns;

	/* Not wanted, not tracked (counted there), or started before tracing. */
	if (!w)
		return 0;
	start = start_of(w, kind);
	if (!*start)
		return counted(LEDGER_UNMATCHED);
	ns = since(*start, bpf_ktime_get_ns());
	*start = 0;
	if (by_pages)
		return 0;
	if (by_shrinker)
		return shrinker_ends(shrinker, freed, ns);
	if (distributed)
		return durations_add(&key, ns);
	ADD(runs[kind], 1);
	ADD(time_ns[kind], ns);
	ADD(freed[kind], freed);
	return 0;
}

PAIR(direct, mm_vmscan_direct_reclaim, begin(VMSCAN_DIRECT), end(VMSCAN_DIRECT, ctx[0], NULL))
PAIR(memcg, mm_vmscan_memcg_reclaim, begin(VMSCAN_MEMCG), end(VMSCAN_MEMCG, ctx[0], NULL))

PROGRAM(on_slab_start, "tp_btf/mm_shrink_slab_start", begin(VMSCAN_SLAB))
PROGRAM(on_slab_end, "tp_btf/mm_shrink_slab_end",
	end(VMSCAN_SLAB, (s32)ctx[2] > 0 ? (u32)ctx[2] : 0, (void *)ctx[0]))

inline_ int kswapd_wanted(void)
{
	if (keep_current())
		ADD(kswapd_wakeups, 1);
	return 0;
}

PROGRAM(on_kswapd_wakeup, "tp_btf/mm_vmscan_wakeup_kswapd", kswapd_wanted())

/*
 * Between a run and its sleep kswapd naps to check if memory stays free: so its CPU
 * time is taken as its run time. The kernel updates that with each tick and switch.
 */
inline_ int kswapd_worked(bool runs)
{
	u64 ns = BPF_CORE_READ(current_task(), se.sum_exec_runtime);
	struct under_way *w;

	if (!keep_current())
		return 0;
	if (runs) /* for a constant 0 the compiler emits an instruction that 5.10 lacks */
		ADD(kswapd_runs, 1);
	w = current_slot(true);
	if (!w)
		return 0;
	if (w->kswapd_ns)
		ADD(kswapd_ns, since(w->kswapd_ns, ns));
	w->kswapd_ns = ns;
	return 0;
}

PROGRAM(on_kswapd_wake, "tp_btf/mm_vmscan_kswapd_wake", kswapd_worked(true))
PROGRAM(on_kswapd_sleep, "tp_btf/mm_vmscan_kswapd_sleep", kswapd_worked(false))

/* Kernels before folios (5.16) pass a page. */
inline_ int written(void *folio)
{
	if (keep_current())
		ADD(written, folio_pages(folio));
	return 0;
}

PROGRAM(on_write_folio, "tp_btf/mm_vmscan_write_folio", written((void *)ctx[0]))
PROGRAM(on_write_page, "tp_btf/mm_vmscan_writepage", written((void *)ctx[0]))

inline_ struct vmscan_pages *pages_now(bool file)
{
	struct vmscan_pages_key key = { .file = file };
	struct under_way *w;

	if (!keep_current())
		return NULL;
	w = current_slot(false);
	key.cause = reclaim_cause_now(!w || !w->reclaim       ? 0 :
				      w->kind == VMSCAN_MEMCG ? RECLAIM_MEMCG + 1 :
								RECLAIM_DIRECT + 1);
	return pages_row(&key);
}

/* 6.7 removed the argument before the list (3dfbb555c98a). */
TP_ARGS(mm_vmscan_lru_isolate);

#define LRU_INACTIVE_ANON 0
#define LRU_INACTIVE_FILE 2

/*
 * Of inactive lists: the kernel also takes pages from active lists, to look at them only. The
 * multi-generational LRU counts the pages that it takes as scanned, not those that it passes over.
 */
TRACING(on_isolate, "tp_btf/mm_vmscan_lru_isolate")
{
	u32 list = tp_args_mm_vmscan_lru_isolate >= 8 ? ARG(ctx, 7) : ARG(ctx, 6);
	u64 scanned = lru_gen ? ARG(ctx, 5) : ARG(ctx, 3);
	struct vmscan_pages *row;

	if (!scanned || (list != LRU_INACTIVE_ANON && list != LRU_INACTIVE_FILE))
		return 0;
	row = pages_now(list == LRU_INACTIVE_FILE);
	if (row)
		__sync_fetch_and_add(&row->scanned, scanned);
	return 0;
}

TRACING(on_shrink, "tp_btf/mm_vmscan_lru_shrink_inactive")
{
	struct reclaim_stat *stat = (void *)ctx[3];
	struct vmscan_pages *row = pages_now((s32)ctx[5]);

	if (!row)
		return 0;
	__sync_fetch_and_add(&row->reclaimed, ctx[2]);
	__sync_fetch_and_add(&row->dirty, BPF_CORE_READ(stat, nr_dirty));
	__sync_fetch_and_add(&row->writeback, BPF_CORE_READ(stat, nr_writeback));
	return 0;
}
