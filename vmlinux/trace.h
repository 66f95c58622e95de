/* SPDX-License-Identifier: GPL-2.0-only */
/* Contexts of tracepoints, which the kernel's trace event macros make. */
#pragma once

/* include/trace/events/kmem.h */
struct trace_event_raw_mm_page_alloc_extfrag {
	unsigned long pfn;
	int alloc_order;
	int fallback_order;
	int alloc_migratetype;
	int fallback_migratetype;
	int change_ownership;
};

/* include/trace/events/writeback.h */
struct trace_event_raw_balance_dirty_pages {
	char bdi[32];
	long pause;
};
