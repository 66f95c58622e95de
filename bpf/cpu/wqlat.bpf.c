// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* wqlat: how long work items wait in their work queues, or run. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/since.bpf.h"
#include "cpu/wqlat.h"

OPT(bool, by_workqueue);
OPT(bool, by_function);
OPT(bool, executions);        /* measure executions instead of waits */
OPT(__u64, barrier_function); /* function of items that flushes wait for: never queued */
OPT(bool, one_workqueue);
const volatile __u64 wanted_name[WORKQUEUE_NAME_LEN / 8] = {};

struct work {
	u64 start; /* of the wait, or of the execution */
	u64 workqueue;
};

/*
 * By the address of the work item. Cancelled items stay until their
 * address is queued again, or until they are evicted as the oldest.
 */
MAP(LRU_HASH, waiting, 1, u64, struct work);

/* The function of an item may free it, and the memory may be queued again. */
struct execution {
	u64 work;
	u64 worker;
};

MAP(HASH, running, 1, struct execution, struct work);

HISTOGRAM(times, struct wqlat_key)

inline_ bool wanted_workqueue(struct workqueue_struct *wq)
{
	u64 name[WORKQUEUE_NAME_LEN / 8] = {};

	if (!one_workqueue)
		return true;
	bpf_core_read_str(name, sizeof(name), &wq->name);
	for (u32 i = 0; i < WORKQUEUE_NAME_LEN / 8; i++)
		if (name[i] != wanted_name[i])
			return false;
	return true;
}

inline_ int add(struct work *w, u64 function, u64 now)
{
	struct workqueue_struct *wq = (void *)w->workqueue;
	struct wqlat_key key = {};

	if (by_function)
		key.function = function;
	if (by_workqueue)
		bpf_core_read_str(key.workqueue, sizeof(key.workqueue), &wq->name);
	return times_add(&key, since(w->start, now));
}

TRACING(on_end, "tp_btf/workqueue_execute_end")
{
	struct execution e = { .work = ctx[0], .worker = bpf_get_current_task() };
	struct work *w = bpf_map_lookup_elem(&running, &e);

	if (!w)
		return 0;
	add(w, function_arg(ctx, 1), bpf_ktime_get_ns());
	bpf_map_delete_elem(&running, &e);
	return 0;
}

/* If tracing started this long ago, the item was queued since: its entry was evicted. */
#define LONG_NS 10000000000ULL

TRACING(on_start, "tp_btf/workqueue_execute_start")
{
	struct work_struct *item = (void *)ctx[0];
	struct execution e = { .work = ctx[0], .worker = bpf_get_current_task() };
	struct work *found = bpf_map_lookup_elem(&waiting, &e.work), w;
	u64 now = bpf_ktime_get_ns();

	if (!found) {
		if (!one_workqueue && !filter.on && began_traced(now - LONG_NS) &&
		    (u64)item->func != barrier_function)
			count(LEDGER_UNTRACKED);
		return 0;
	}
	w = *found;
	bpf_map_delete_elem(&waiting, &e.work);
	if (!executions)
		return add(&w, (u64)item->func, now);
	w.start = now;
	return map_put(&running, &e, &w);
}

TRACING(on_queue, "tp_btf/workqueue_queue_work")
{
	struct workqueue_struct *wq = ((struct pool_workqueue *)ctx[1])->wq;
	struct work w = { .start = bpf_ktime_get_ns(), .workqueue = (u64)wq };
	u64 work = ctx[2];

	if (!wanted_workqueue(wq))
		return filtered();
	if (keep_current())
		map_put(&waiting, &work, &w);
	return 0;
}
