// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* oomkill: processes killed because memory is exhausted. */
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "memory/memcg.bpf.h"
#include "lib/mm/mm.bpf.h"
#include "lib/core/program.bpf.h"
#include "memory/oomkill.h"

RECORD(oomkill_event);

/* 6.2 made the counters per CPU (f1a7941243c1): `count` omits some pages of each CPU. */
struct mm_struct___old_rss {
	struct {
		atomic_long_t count[4];
	} rss_stat;
} __attribute__((preserve_access_index));

/* Resident pages of one kind: of files, anonymous ones, (swapped ones,) of shared memory. */
enum mm_rss { RSS_FILE, RSS_ANON, RSS_SWAPPED, RSS_SHMEM };

/* A macro: CO-RE relocates an index only if it is a compile-time constant. */
#define mm_rss(mm, kind)                                                                 \
	({                                                                               \
		struct mm_struct___old_rss *old_ = (void *)mm;                           \
		s64 pages_ = bpf_core_field_exists(old_->rss_stat.count) ?               \
				     BPF_CORE_READ(old_, rss_stat.count[kind].counter) : \
				     BPF_CORE_READ(mm, rss_stat[kind].count);            \
		pages_ > 0 ? pages_ : 0;                                                 \
	})

#define SIGKILL 9
#define SEND_SIG_PRIV 1 /* in place of a siginfo: sent by the kernel */

/* A task's last operations that may lead to a kill. */
struct cause {
	u64 killed; /* address of the task to which it sent SIGKILL for the kernel */
	u32 kind, gfp, known;
	s32 order;
};

TASK_SLOT(struct cause);

/* The last reclaim before an OOM kill shows whose limit was exceeded. */
inline_ int reclaims(u64 *ctx, u32 args, u32 kind)
{
	struct cause *c = current_slot(true);

	if (!c)
		return 0;
	reclaim_args(ctx, args, &c->order, &c->gfp);
	c->kind = kind;
	c->known = true;
	return 0;
}

PROGRAM(on_direct, "tp_btf/mm_vmscan_direct_reclaim_begin",
	reclaims(ctx, tp_args_mm_vmscan_direct_reclaim_begin, OOMKILL_MACHINE))
PROGRAM(on_memcg, "tp_btf/mm_vmscan_memcg_reclaim_begin",
	reclaims(ctx, tp_args_mm_vmscan_memcg_reclaim_begin, OOMKILL_MEMCG))

/* Processes already exiting are marked as well, but get no signal. */
TRACING(on_signal, "tp_btf/signal_generate")
{
	struct cause *c;

	if ((u32)ctx[0] != SIGKILL || ctx[1] != SEND_SIG_PRIV)
		return 0;
	c = current_slot(true);
	if (c)
		c->killed = ctx[2];
	return 0;
}

/* In the context of the task whose allocation failed. */
inline_ int marked(void *ctx, struct task_struct *victim)
{
	struct cause *c = current_slot(false);
	struct oomkill_event *e = keep_task(victim) ? emit_begin_stack(sizeof(*e)) : NULL;
	struct mm_struct *mm;

	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	identify_known(&e->victim, victim);
	identify_current(&e->trigger);
	e->order = -1;
	if (c) {
		e->killed = c->killed == (u64)victim;
		c->killed = 0;
		if (c->known) {
			e->kind = c->kind;
			e->order = c->order;
			e->gfp = c->gfp;
		}
	}
	e->oom_score_adj = BPF_CORE_READ(victim, signal, oom_score_adj);
	mm = BPF_CORE_READ(victim, mm);
	e->anon = mm_rss(mm, RSS_ANON);
	e->file = mm_rss(mm, RSS_FILE);
	e->shmem = mm_rss(mm, RSS_SHMEM);
	describe_memcg(&e->memcg, victim);
	return emit_end_stack(ctx, e, sizeof(*e));
}

PROGRAM(on_victim, "tp_btf/mark_victim", marked(ctx, (struct task_struct *)ctx[0]))

/* Before 6.9 (72ba14deb40a, also in stable kernels) only the victim's pid was passed. */
TRACING(on_victim_number, "tp_btf/mark_victim")
{
	struct cause *c = current_slot(false);
	struct task_struct *victim = c ? (void *)c->killed : NULL;
	u32 number = ctx[0];

	if (!victim || (u32)BPF_CORE_READ(victim, pid) != number)
		victim = current_task();
	if ((u32)BPF_CORE_READ(victim, pid) != number)
		return 0;
	return marked(ctx, victim);
}
