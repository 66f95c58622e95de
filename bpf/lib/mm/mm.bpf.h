/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory management: differences between kernels.
 *
 * Contexts: all.
 */
#ifndef CORETAP_MM_BPF_H
#define CORETAP_MM_BPF_H

#include "lib/core/follow.bpf.h"
#include "lib/core/task.bpf.h"
#include "lib/mm/reclaim.h"

#define PF_KSWAPD 0x20000

FOLLOWED(folio); /* kernels with casts have folios (5.16) */

/* 7.2 moved the flags before the order and added the memory cgroup to these tracepoints. */
TP_ARGS(mm_vmscan_direct_reclaim_begin);
TP_ARGS(mm_vmscan_memcg_reclaim_begin);

inline_ void reclaim_args(u64 *ctx, u32 args, s32 *order, u32 *gfp)
{
	if (args == 2) {
		*order = (s32)ARG(ctx, 0);
		*gfp = (u32)ARG(ctx, 1);
	} else {
		*gfp = (u32)ARG(ctx, 0);
		*order = (s32)ARG(ctx, 1);
	}
}

/* The cause of the running task's reclaim; `begun`: of its run in progress, plus one; 0: none. */
inline_ u32 reclaim_cause_now(u64 begun)
{
	if (BPF_CORE_READ(current_task(), flags) & PF_KSWAPD)
		return RECLAIM_KSWAPD;
	return begun ? begun - 1 : RECLAIM_OTHER;
}

/* 6.18 wrapped page and folio flags into memdesc_flags_t (53fbef56e07d). */
struct folio___plain_flags {
	unsigned long flags;
} __attribute__((preserve_access_index));

struct page___plain_flags {
	unsigned long flags;
	unsigned char compound_order; /* of the second page, up to 5.15 */
} __attribute__((preserve_access_index));

/* Up to 6.5 the order was a separate member (379708ffde1b), then the low byte of _flags_1.
 */
struct folio___with_order {
	unsigned char _folio_order;
} __attribute__((preserve_access_index));

/* For a folio or a page: both start with the flags. */
inline_ u64 folio_flags(void *pointer)
{
	struct folio___plain_flags *plain = pointer;
	struct page___plain_flags *page = pointer;
	struct folio *folio = pointer;
	u64 flags = 0;

	if (type_id_folio) {
		folio = CAST(folio, pointer);
		plain = (void *)folio;
		return bpf_core_type_exists(memdesc_flags_t) ? folio->flags.f : plain->flags;
	}
	if (bpf_core_type_exists(memdesc_flags_t))
		bpf_core_read(&flags, sizeof(flags), &folio->flags);
	else if (bpf_core_type_exists(struct folio))
		bpf_core_read(&flags, sizeof(flags), &plain->flags);
	else
		bpf_core_read(&flags, sizeof(flags), &page->flags);
	return flags;
}

/* Pages of a folio; on kernels before folios (5.16) the pointer is a page's. */
inline_ u64 folio_pages(void *pointer)
{
	u64 head = 1ULL << bpf_core_enum_value(enum pageflags, PG_head);
	u64 flags = folio_flags(pointer);
	struct folio___with_order *with_order = pointer;
	struct page___plain_flags *page = pointer;
	struct folio *folio = pointer;
	u8 order = 0;

	if (!(flags & head))
		return 1;
	if (!bpf_core_type_exists(struct folio)) {
		page = pointer + bpf_core_type_size(struct page);
		bpf_core_read(&order, sizeof(order), &page->compound_order);
		return 1ULL << (order & 31);
	}
	if (bpf_core_field_exists(with_order->_folio_order)) {
		bpf_core_read(&order, sizeof(order), &with_order->_folio_order);
	} else {
		order = FOLLOW(folio, folio, _flags_1);
	}
	return 1ULL << (order & 31);
}

/* 6.16 renamed it in struct page, where only folios use it now. */
struct page___with_index {
	unsigned long index;
} __attribute__((preserve_access_index));

/* Index in the file where a folio starts, or a page on kernels before folios. */
inline_ u64 folio_index(void *pointer)
{
	struct page___with_index *page = pointer;
	struct folio *folio = pointer;

	return bpf_core_type_exists(struct folio) ? FOLLOW(folio, folio, index) :
						    BPF_CORE_READ(page, index);
}

/* The file's mapping of a folio, or of a page on kernels before folios. */
inline_ u64 folio_mapping(void *pointer)
{
	struct folio *folio = pointer;
	struct page *page = pointer;

	return bpf_core_type_exists(struct folio) ? FOLLOW_NUMBER(folio, folio, mapping) :
						    (u64)BPF_CORE_READ(page, mapping);
}

#endif
