// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cachestat: hits and misses of the page cache. */
#include "lib/aggregate.bpf.h"
#include "lib/filter.bpf.h"
#include "lib/mm.bpf.h"
#include "lib/program.bpf.h"
#include "fs/cachestat.h"

SUMS(pages, struct cachestat_sums)

/* What a task did last, to tell one access from its echoes. */
struct last {
	u64 read_mapping, read_first, read_last, read_calls;
	u64 fault_mapping, fault_from, fault_to;
	u64 missed_mapping, missed_index; /* a fault that had to read: it is tried again */
	u64 fault_index;
	u64 added_folio; /* not yet known to be a write's */
};

TASK_SLOT(struct last);

#define ADD(counter, n) SUM_ADD(pages, counter, n)

/* The running task's; NULL where it is not wanted. */
inline_ struct last *wanted_slot(void)
{
	return keep_current() ? current_slot(true) : NULL;
}

/* Read calls of a task, where the kernel counts them (CONFIG_TASK_XACCT). */
inline_ u64 read_calls(void)
{
	struct task_struct *t = current_task();

	return bpf_core_field_exists(t->ioac.syscr) ? BPF_CORE_READ(t, ioac.syscr) : 0;
}

/*
 * Fires for each batch with the range that is still to be read: the same end with a later start, in
 * the same call, is the same read.
 */
SEC("tp_btf/mm_filemap_get_pages")
int on_read(u64 *ctx)
{
	u64 mapping = ctx[0], first = ctx[1], last = ctx[2], calls;
	struct last *l;
	bool echo;

	l = wanted_slot();
	if (!l)
		return 0;
	calls = read_calls();
	echo = l->read_mapping == mapping && l->read_last == last && first > l->read_first &&
	       l->read_calls == calls;
	l->read_calls = calls;
	l->read_mapping = mapping;
	l->read_first = first;
	l->read_last = last;
	if (!echo && last >= first)
		ADD(accessed, last - first + 1);
	return 0;
}

/* A fault that has read its page from the disk is taken a second time, and is one access. */
inline_ bool tried_again(struct last *l, u64 mapping, u64 from, u64 to)
{
	bool again =
		l->missed_mapping == mapping && from <= l->missed_index && l->missed_index <= to;

	l->missed_mapping = 0;
	return again;
}

/* Pages around a fault were mapped, mostly with the one wanted: one access. */
SEC("tp_btf/mm_filemap_map_pages")
int on_map(u64 *ctx)
{
	struct last *l;

	l = wanted_slot();
	if (!l)
		return 0;
	l->fault_mapping = ctx[0];
	l->fault_from = ctx[1];
	l->fault_to = ctx[2];
	if (tried_again(l, ctx[0], ctx[1], ctx[2]))
		return 0;
	ADD(accessed, 1);
	return 0;
}

/* A fault that mapping around did not end, or that did not try it. */
SEC("tp_btf/mm_filemap_fault")
int on_fault(u64 *ctx)
{
	u64 mapping = ctx[0], index = ctx[1];
	struct last *l;
	bool echo;

	l = wanted_slot();
	if (!l)
		return 0;
	echo = l->fault_mapping == mapping && l->fault_from <= index && index <= l->fault_to;
	echo |= tried_again(l, mapping, index, index);
	l->fault_index = index;
	l->fault_mapping = mapping;
	l->fault_from = 1;
	l->fault_to = 0; /* the next fault is another one */
	if (!echo)
		ADD(accessed, 1);
	return 0;
}

inline_ int accessed(void *folio)
{
	if (keep_current())
		ADD(accessed, folio_pages(folio));
	return 0;
}

FUNC_ENTRY(folio_accessed, folio_mark_accessed, accessed((void *)arg[0]))
FUNC_ENTRY(page_accessed, mark_page_accessed, accessed((void *)arg[0]))

SEC("tp_btf/mm_filemap_add_to_page_cache")
int on_add(u64 *ctx)
{
	struct folio *folio = (struct folio *)ctx[0];
	struct last *l;

	if (!keep_current())
		return 0;
	ADD(added, folio_pages(folio));
	l = current_slot(true);
	if (!l)
		return 0;
	l->added_folio = (u64)folio;
	if (l->fault_mapping && l->fault_mapping == folio_mapping(folio)) {
		/* What a fault reads in and then dirties was a miss all the same. */
		l->added_folio = 0;
		l->missed_mapping = l->fault_mapping;
		l->missed_index = l->fault_index;
	}
	return 0;
}

/* write() dirties what it has just added; the first write to a page that was there is a hit. */
inline_ int dirtied(void *folio)
{
	u64 pages;
	struct last *l;

	if (!keep_current())
		return 0;
	pages = folio_pages(folio);
	ADD(dirtied, pages);
	l = current_slot(false);
	if (l && l->added_folio == (u64)folio) {
		l->added_folio = 0;
		l->fault_mapping = 0;
		ADD(written, pages);
	}
	return 0;
}

SEC("tp_btf/writeback_dirty_folio")
int on_dirty_folio(u64 *ctx)
{
	return dirtied((void *)ctx[0]);
}

SEC("tp_btf/writeback_dirty_page")
int on_dirty_page(u64 *ctx)
{
	return dirtied((void *)ctx[0]);
}
