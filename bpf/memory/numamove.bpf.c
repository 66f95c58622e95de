// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* numamove: pages that NUMA balancing moves to the node of the accessing task. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/mm/mm.bpf.h"
#include "lib/core/program.bpf.h"
#include "memory/numamove.h"

SUMS(migrations, struct numamove_sums)

/* The current migration of a task; only one at a time. */
struct migration {
	u64 start; /* 0: none in progress */
	u64 pages; /* of a huge page, which a separate function moves */
};

TASK_SLOT(struct migration);

/* Kernels after 6.1 have the splits of large folios before the last two arguments. */
TP_ARGS(mm_migrate_pages);

/* Compaction, memory policies and system calls use the same function. */
inline_ bool by_balancing(u64 reason)
{
	return (u32)reason == bpf_core_enum_value(enum migrate_reason, MR_NUMA_MISPLACED);
}

inline_ int begin(u64 pages)
{
	struct migration *m = wanted_slot();

	if (!m)
		return 0;
	m->pages = pages;
	m->start = bpf_ktime_get_ns();
	return 0;
}

inline_ void add(struct migration *m, u64 moved, u64 failed)
{
	struct numamove_sums *s = migrations_slot();

	if (!s)
		return;
	__sync_fetch_and_add(&s->migrations, 1);
	__sync_fetch_and_add(&s->moved, moved);
	__sync_fetch_and_add(&s->failed, failed);
	if (!m || !m->start)
		return;
	__sync_fetch_and_add(&s->timed, 1);
	__sync_fetch_and_add(&s->time_ns, since(m->start, bpf_ktime_get_ns()));
	m->start = 0;
}

PROGRAM(on_start, "tp_btf/mm_migrate_pages_start", by_balancing(ctx[1]) ? begin(0) : 0)

/*
 * Before that tracepoint existed: the only function that migrates for this reason.
 * If it fails early, the migration has no end, and the next start replaces this one.
 */
FUNC_ENTRY(on_misplaced, migrate_misplaced_page, begin(0))

TRACING(on_end, "tp_btf/mm_migrate_pages")
{
	u64 reason = tp_args_mm_migrate_pages >= 8 ? ARG(ctx, 7) : ARG(ctx, 6);

	if (by_balancing(reason) && keep_current())
		add(current_slot(false), ctx[0], ctx[1]);
	return 0;
}

/*
 * Up to 5.13 huge pages had a separate function (c5b5a3dd2c1f),
 * with more arguments than fentry supports. The sixth is the page.
 */
SEC("kprobe/migrate_misplaced_transhuge_page")
int on_huge_start(struct pt_regs *ctx)
{
	return begin(folio_pages((void *)PARM6(ctx)));
}

SEC("kretprobe/migrate_misplaced_transhuge_page")
int on_huge_end(struct pt_regs *ctx)
{
	struct migration *m = current_slot(false);
	bool moved = (u32)PT_REGS_RC(ctx);

	if (m && m->start)
		add(m, moved ? m->pages : 0, moved ? 0 : m->pages);
	return 0;
}
