// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* readahead: time from read-ahead to first access of pages. */
#include "lib/core/filter.bpf.h"
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/mm/mm.bpf.h"
#include "lib/core/program.bpf.h"
#include "fs/readahead.h"

SUMS(pages, struct readahead_sums)
OPT(__u64, ages_step);
SUMS(ages, struct hist)

inline_ void ages_add_n(u64 value, u64 n)
{
	struct hist *h = ages_slot();

	if (h)
		hist_log2(h, value, n, ages_step);
}

#define EEXIST 17

#define ADD(counter, n) SUM_ADD(pages, counter, n)

/*
 * Unused folios, by file and first page. A folio that is replaced by another
 * (migration) keeps its entry; the entry is deleted when the folio is used or dropped.
 */
struct place {
	u64 mapping;
	u64 index;
};

struct unused {
	u64 time;
	u64 pages;
};

MAP(HASH, unused, 1, struct place, struct unused);

/*
 * Number of unused pages of a file, so that reads of files without any
 * cost one lookup. Files may share a counter, which only costs time.
 */
#define FILES_BITS 14

MAP(ARRAY, unused_of_file, 1 << FILES_BITS, u32, u64);

inline_ u64 *unused_pages_of(u64 mapping)
{
	u32 slot = mapping * 0x9e3779b97f4a7c15ULL >> (64 - FILES_BITS);

	return bpf_map_lookup_elem(&unused_of_file, &slot);
}

inline_ void change_unused(u64 mapping, u64 pages)
{
	u64 *n = unused_pages_of(mapping);

	if (n)
		__sync_fetch_and_add(n, pages);
}

inline_ bool has_unused(u64 mapping)
{
	u64 *n = unused_pages_of(mapping);

	return n && *n;
}

/* The range that a task is about to read ahead. */
struct window {
	u64 mapping; /* 0: none */
	u64 from, to;
};

TASK_SLOT(struct window);

/*
 * Sizes of folios added so far: other sizes are skipped.
 * Bytes, as 5.10 has no atomic way to set a bit.
 */
#define ORDERS 16
volatile __u8 order_seen[ORDERS] = {};

inline_ int open_window(u64 mapping, u64 from, u64 pages)
{
	struct window *w = wanted_slot();

	if (!w)
		return 0;
	w->mapping = mapping;
	w->from = from;
	w->to = from + pages;
	return 0;
}

/* 6.18 and later have tracepoints for this. */
inline_ u64 mapping_of(u64 *ctx)
{
	return (u64)((struct inode *)ctx[0])->i_mapping;
}

PROGRAM(on_unbounded, "tp_btf/page_cache_ra_unbounded",
	open_window(mapping_of(ctx), ctx[1], ctx[2]))
PROGRAM(on_order, "tp_btf/page_cache_ra_order",
	open_window(mapping_of(ctx), ctx[1], ((struct file_ra_state *)ctx[2])->size))

inline_ int by_control(struct readahead_control *control, u64 pages)
{
	return open_window((u64)BPF_CORE_READ(control, mapping), BPF_CORE_READ(control, _index),
			   pages);
}

inline_ u64 size_of(struct file_ra_state *ra)
{
	return BPF_CORE_READ(ra, size);
}

FUNC_ENTRY(in_unbounded, page_cache_ra_unbounded, by_control((void *)arg[0], arg[1]))
FUNC_ENTRY(in_order, page_cache_ra_order, by_control((void *)arg[0], size_of((void *)arg[1])))

TRACING(on_add, "tp_btf/mm_filemap_add_to_page_cache")
{
	void *folio = (void *)ctx[0];
	struct place place = {};
	struct unused fresh = {};
	struct window *w = current_slot(false);
	u32 order;
	long error;

	if (!w || !w->mapping)
		return 0;
	place.mapping = folio_mapping(folio);
	place.index = folio_index(folio);
	/* A large folio may start before the window. */
	fresh.pages = folio_pages(folio);
	if (place.mapping != w->mapping || place.index + fresh.pages <= w->from ||
	    place.index >= w->to)
		return 0;
	w->from = place.index + fresh.pages;
	if (w->from >= w->to)
		w->mapping = 0;
	fresh.time = bpf_ktime_get_ns();
	error = bpf_map_update_elem(&unused, &place, &fresh, BPF_NOEXIST);
	if (error == -EEXIST) { /* stale entry, removal not seen: replace it */
		bpf_map_update_elem(&unused, &place, &fresh, BPF_ANY);
		return 0;
	}
	if (error) {
		count_n(LEDGER_UNTRACKED, fresh.pages);
		return 0;
	}
	change_unused(place.mapping, fresh.pages);
	ADD(read, fresh.pages);
	order = log2_u64(fresh.pages);
	barrier_var(order);
	order &= ORDERS - 1;
	if (!order_seen[order])
		order_seen[order] = 1;
	return 0;
}

TRACING(on_delete, "tp_btf/mm_filemap_delete_from_page_cache")
{
	void *folio = (void *)ctx[0];
	struct place place = { folio_mapping(folio), 0 };
	struct unused *u;
	u64 pages;

	if (!has_unused(place.mapping))
		return 0;
	place.index = folio_index(folio);
	u = bpf_map_lookup_elem(&unused, &place);
	if (!u)
		return 0;
	pages = u->pages;
	if (!bpf_map_delete_elem(&unused, &place)) {
		change_unused(place.mapping, -pages);
		ADD(dropped, pages);
	}
	return 0;
}

/*
 * Uses the folio that contains this page, as a whole. Returns the index after the folio.
 * Folios are at multiples of their size. A separate function: the verifier checks it once.
 */
__noinline u64 use(u64 mapping, u64 index)
{
	struct place place = { .mapping = mapping };
	struct unused *u;
	u64 time, pages;

	for (u32 order = 0; order < ORDERS; order++) {
		if (!order_seen[order])
			continue;
		place.index = index >> order << order;
		u = bpf_map_lookup_elem(&unused, &place);
		if (!u || place.index + u->pages <= index)
			continue;
		time = u->time;
		pages = u->pages;
		/* If two tasks access it at once, only the first counts. */
		if (!bpf_map_delete_elem(&unused, &place)) {
			change_unused(mapping, -pages);
			ADD(used, pages);
			ages_add_n(since(time, bpf_ktime_get_ns()), pages);
		}
		return place.index + pages;
	}
	return index + 1;
}

/* A read reports its remaining range for each batch of fewer folios than this; a fault, 16 pages.
 */
#define BATCH 64

inline_ int use_range(u64 mapping, u64 first, u64 last)
{
	if (!has_unused(mapping))
		return 0;
	for (u32 i = 0; i < BATCH && first <= last; i++)
		first = use(mapping, first);
	return 0;
}

/* A pointer as a scalar, as required for arguments of global functions. */
inline_ u64 first_number(u64 *ctx)
{
	u64 number = 0;

	bpf_probe_read_kernel(&number, sizeof(number), ctx);
	return number;
}

PROGRAM(on_read, "tp_btf/mm_filemap_get_pages", use_range(first_number(ctx), ctx[1], ctx[2]))
PROGRAM(on_map, "tp_btf/mm_filemap_map_pages", use_range(first_number(ctx), ctx[1], ctx[2]))
PROGRAM(on_fault, "tp_btf/mm_filemap_fault", use_range(first_number(ctx), ctx[1], ctx[1]))

/* Kernels before 6.12: reads mark accessed pages, faults are traced at function entries. */
inline_ int marked(void *folio)
{
	u64 index = folio_index(folio);

	return use_range(folio_mapping(folio), index, index);
}

inline_ u64 fault_mapping(struct vm_fault *fault)
{
	return (u64)BPF_CORE_READ(fault, vma, vm_file, f_mapping);
}

inline_ int faulted(struct vm_fault *fault)
{
	u64 index = BPF_CORE_READ(fault, pgoff);

	return use_range(fault_mapping(fault), index, index);
}

FUNC_ENTRY(folio_used, folio_mark_accessed, marked((void *)arg[0]))
FUNC_ENTRY(page_used, mark_page_accessed, marked((void *)arg[0]))
FUNC_ENTRY(in_map, filemap_map_pages, use_range(fault_mapping((void *)arg[0]), arg[1], arg[2]))
FUNC_ENTRY(in_fault, filemap_fault, faulted((void *)arg[0]))
