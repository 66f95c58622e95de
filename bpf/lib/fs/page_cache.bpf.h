/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Accesses to the page cache by the running task, and pages
 * that were read in for them. The tool defines page_cache_slot().
 *
 * Contexts: the running task, outside of interrupts.
 */
#ifndef CORETAP_PAGE_CACHE_BPF_H
#define CORETAP_PAGE_CACHE_BPF_H

#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/bits.bpf.h"
#include "lib/core/exchange.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/mm/mm.bpf.h"
#include "lib/fs/page_cache.h"
#include "lib/core/program.bpf.h"

/* Where to count for the running task; NULL: nowhere. */
inline_ struct page_cache_sums *page_cache_slot(void);

/* A task's last operations, to recognize events that repeat one access. */
struct last {
	u64 read_mapping, read_first, read_last, read_calls;
	u64 fault_mapping, fault_from, fault_to;
	u64 missed_mapping, missed_index; /* a fault that had to read: it is retried */
	u64 fault_index;
	u64 added_folio; /* not yet known to be for a write */
	u64 added_mapping, added_index, added_pages;
	u64 accessed_mapping;
};

TASK_SLOT(struct last);

/*
 * Pages that were read in and not accessed yet, a bit each: the first access to one is
 * a miss, the others are read-ahead. The oldest are evicted and then count as hits.
 */
#define CHUNK_PAGES WORD_BITS
#define MOST_CHUNKS 32 /* per access or folio: 8 MB of pages of 4 KB */

struct chunk {
	u64 mapping, number;
};

MAP(LRU_HASH, ahead_of, 8192, struct chunk, u64);

/* The word is 0 while a task changes its bits; bits set by other tasks meanwhile are added. */
inline_ void set_bits(u64 *word, u64 bits)
{
	bits |= exchange(word, 0);
	__sync_fetch_and_add(word, bits);
}

/* Clears these bits; returns those that were set. */
inline_ u64 take_bits(u64 *word, u64 bits)
{
	u64 before = exchange(word, 0), rest = before & ~bits;

	if (rest)
		__sync_fetch_and_add(word, rest);
	return before & bits;
}

inline_ u64 number_of_bits(u64 x)
{
	x -= (x >> 1) & 0x5555555555555555;
	x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333);
	return ((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56;
}

/*
 * Stores the pages from first to last. This and access() are functions that the verifier checks
 * once: at each call in on_read it would take 190 ms.
 */
__noinline int add_ahead(u64 mapping, u64 first, u64 last)
{
	struct chunk c = { .mapping = mapping, .number = first / CHUNK_PAGES };
	u64 *ahead, bits;

	for (int i = 0; i < MOST_CHUNKS && c.number <= last / CHUNK_PAGES; i++, c.number++) {
		bits = bits_of_word(c.number, first, last);
		ahead = bpf_map_lookup_elem(&ahead_of, &c);
		if (!ahead && bpf_map_update_elem(&ahead_of, &c, &bits, BPF_NOEXIST))
			ahead = bpf_map_lookup_elem(&ahead_of, &c); /* another task was first */
		if (ahead)
			set_bits(ahead, bits);
	}
	return 0;
}

/* The last added folio was not for a write. */
inline_ void keep_ahead(struct last *l)
{
	if (!l->added_folio)
		return;
	l->added_folio = 0;
	add_ahead(l->added_mapping, l->added_index, l->added_index + l->added_pages - 1);
}

/*
 * Counts misses among the pages from first to last, for this number of accesses. A long read calls
 * this for each batch of pages, so it stops at the first chunk without pages that were read in.
 */
__noinline int access(u64 mapping, u64 first, u64 last, u64 accesses)
{
	struct chunk c = { .mapping = mapping, .number = first / CHUNK_PAGES };
	u64 *ahead, bits, misses = 0;

	for (int i = 0; i < MOST_CHUNKS && c.number <= last / CHUNK_PAGES; i++, c.number++) {
		ahead = bpf_map_lookup_elem(&ahead_of, &c);
		if (!ahead)
			break;
		bits = bits_of_word(c.number, first, last);
		if (!(*ahead & bits))
			continue;
		misses += number_of_bits(take_bits(ahead, bits));
	}
	if (accesses > misses)
		accesses = misses;
	if (accesses)
		SUM_ADD(page_cache, missed, accesses);
	return 0;
}

/* Through memory: read back, the address is a number, which the function takes. */
inline_ void access_by(struct last *l, u64 mapping, u64 first, u64 last, u64 accesses)
{
	*(volatile u64 *)&l->accessed_mapping = mapping;
	access(*(volatile u64 *)&l->accessed_mapping, first, last, accesses);
}

/* Number of read calls of a task, if the kernel counts them (CONFIG_TASK_XACCT). */
inline_ u64 read_calls(void)
{
	struct task_struct *t = current_task();

	return bpf_core_field_exists(t->ioac.syscr) ? BPF_CORE_READ(t, ioac.syscr) : 0;
}

/*
 * Fires for each batch with the remaining range: the same end
 * with a later start, in the same call, is the same read.
 */
TRACING(on_read, "tp_btf/mm_filemap_get_pages")
{
	u64 mapping = ctx[0], first = ctx[1], last = ctx[2], calls;
	struct last *l = wanted_slot();
	bool echo;

	if (!l)
		return 0;
	calls = read_calls();
	echo = l->read_mapping == mapping && l->read_last == last && first > l->read_first &&
	       l->read_calls == calls;
	l->read_calls = calls;
	l->read_mapping = mapping;
	l->read_first = first;
	l->read_last = last;
	if (last < first)
		return 0;
	if (!echo)
		SUM_ADD(page_cache, accessed, last - first + 1);
	/* The tracepoint fires when the pages are present, read in or found. */
	keep_ahead(l);
	access_by(l, mapping, first, last, last - first + 1);
	return 0;
}

/* A fault that has read its page from disk is retried, and is one access. */
inline_ bool tried_again(struct last *l, u64 mapping, u64 from, u64 to)
{
	bool again =
		l->missed_mapping == mapping && from <= l->missed_index && l->missed_index <= to;

	l->missed_mapping = 0;
	return again;
}

/* Fault-around mapped pages, mostly with the faulting one: one access. */
TRACING(on_map, "tp_btf/mm_filemap_map_pages")
{
	struct last *l = wanted_slot();
	bool again;

	if (!l)
		return 0;
	l->fault_mapping = ctx[0];
	l->fault_from = ctx[1];
	l->fault_to = ctx[2];
	again = tried_again(l, ctx[0], ctx[1], ctx[2]);
	if (!again)
		SUM_ADD(page_cache, accessed, 1);
	keep_ahead(l);
	access_by(l, ctx[0], ctx[1], ctx[2], again ? 0 : 1);
	return 0;
}

/* A fault that fault-around did not resolve, or did not try. */
TRACING(on_fault, "tp_btf/mm_filemap_fault")
{
	u64 mapping = ctx[0], index = ctx[1];
	struct last *l = wanted_slot();
	bool echo;

	if (!l)
		return 0;
	echo = l->fault_mapping == mapping && l->fault_from <= index && index <= l->fault_to;
	echo |= tried_again(l, mapping, index, index);
	l->fault_index = index;
	l->fault_mapping = mapping;
	l->fault_from = 1;
	l->fault_to = 0; /* empty range: the next fault is another one */
	if (!echo)
		SUM_ADD(page_cache, accessed, 1);
	keep_ahead(l);
	access_by(l, mapping, index, index, echo ? 0 : 1);
	return 0;
}

inline_ int accessed(void *folio)
{
	u64 pages, index;
	struct last *l;

	if (!keep_current())
		return 0;
	pages = folio_pages(folio);
	SUM_ADD(page_cache, accessed, pages);
	l = current_slot(true);
	if (!l)
		return 0;
	keep_ahead(l);
	index = folio_index(folio);
	access_by(l, folio_mapping(folio), index, index + pages - 1, pages);
	return 0;
}

FUNC_ENTRY(folio_accessed, folio_mark_accessed, accessed((void *)arg[0]))
FUNC_ENTRY(page_accessed, mark_page_accessed, accessed((void *)arg[0]))

TRACING(on_add, "tp_btf/mm_filemap_add_to_page_cache")
{
	struct folio *folio = (struct folio *)ctx[0];
	u64 mapping, index, pages;
	struct last *l;

	if (!keep_current())
		return 0;
	pages = folio_pages(folio);
	SUM_ADD(page_cache, added, pages);
	l = current_slot(true);
	if (!l)
		return 0;
	keep_ahead(l);
	mapping = folio_mapping(folio);
	index = folio_index(folio);
	l->added_folio = (u64)folio;
	l->added_mapping = mapping;
	l->added_index = index;
	l->added_pages = pages;
	if (l->fault_mapping && l->fault_mapping == mapping) {
		/* A page that a fault reads in and then dirties still is a miss. */
		keep_ahead(l);
		l->missed_mapping = mapping;
		l->missed_index = l->fault_index;
		if (index <= l->fault_index && l->fault_index < index + pages)
			SUM_ADD(page_cache, missed, 1);
	}
	return 0;
}

/* write() dirties a folio just added; the first write to a page already cached is a hit. */
inline_ int dirtied(void *folio)
{
	u64 pages;
	struct last *l;

	if (!keep_current())
		return 0;
	pages = folio_pages(folio);
	SUM_ADD(page_cache, dirtied, pages);
	l = current_slot(false);
	if (l && l->added_folio == (u64)folio) {
		l->added_folio = 0;
		l->fault_mapping = 0;
		SUM_ADD(page_cache, written, pages);
	}
	return 0;
}

PROGRAM(on_dirty_folio, "tp_btf/writeback_dirty_folio", dirtied((void *)ctx[0]))
PROGRAM(on_dirty_page, "tp_btf/writeback_dirty_page", dirtied((void *)ctx[0]))

#endif
