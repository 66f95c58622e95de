// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* slabratetop: allocations from the kernel's slab caches. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/paths/row_text.bpf.h"
#include "memory/slabratetop.h"

CPU_TABLE(caches, struct slabratetop_key, struct slabratetop_counts)

TP_ARGS(kmalloc);

/*
 * Before 6.1 (05b24ff9b2cf) a program of an interrupt at the same tracepoint may run in
 * the middle of this one. Since then the tracepoint also has six arguments (11e9734bcb6a).
 */
inline_ void add_to(u64 *sum, u64 n)
{
	if (tp_args_kmalloc < 6)
		__sync_fetch_and_add(sum, n);
	else
		*sum += n;
}

inline_ struct slabratetop_counts *add(u64 cache, u64 bytes)
{
	struct slabratetop_key key = { .cache = cache };
	struct slabratetop_counts *row = caches_row(&key);

	if (row) {
		add_to(&row->allocs, 1);
		add_to(&row->bytes, bytes);
	}
	return row;
}

inline_ int from_cache(struct kmem_cache *cache, u64 size, const char *name)
{
	struct slabratetop_counts *row = add((u64)cache, size);

	if (row && !row->named)
		row->named = send_row_name((u64)cache, name);
	return 0;
}

inline_ int called_with(u64 cache)
{
	struct kmem_cache *c = (void *)cache;

	return keep_current() ? from_cache(c, BPF_CORE_READ(c, size), BPF_CORE_READ(c, name)) : 0;
}

/*
 * The object is not read, so a failed allocation, which has none, counts as
 * well: before 6.16 tracing programs cannot access pointers to const void.
 */
TRACING(on_alloc, "tp_btf/kmem_cache_alloc")
{
	struct kmem_cache *cache = (void *)ctx[2];

	return keep_current() ? from_cache(cache, cache->size, cache->name) : 0;
}

/* Before 6.1 the tracepoint had no cache (2c1d697fb8ba). */
FUNC_ENTRY(on_call, kmem_cache_alloc, called_with(arg[0]))
FUNC_ENTRY(on_node_call, kmem_cache_alloc_node, called_with(arg[0]))

inline_ int from_kmalloc(u64 size)
{
	if (keep_current())
		add(size, size);
	return 0;
}

PROGRAM(on_kmalloc, "tp_btf/kmalloc", from_kmalloc(ctx[3]))
PROGRAM(on_kmalloc_node, "tp_btf/kmalloc_node", from_kmalloc(ctx[3]))
