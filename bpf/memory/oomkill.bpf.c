// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* oomkill: processes that are killed because there is no memory left. */
#include "lib/emit.bpf.h"
#include "lib/filter.bpf.h"
#include "lib/mm.bpf.h"
#include "memory/oomkill.h"

#define SIGKILL 9
#define SEND_SIG_PRIV 1 /* in the place of a siginfo: the kernel sends it */
#define NAME_ROOM 256   /* NAME_MAX and a terminator */
#define LEVELS 32

/* What a task did last, that may lead to a kill. */
struct cause {
	u64 killed; /* address of the task that it sent the kernel's SIGKILL */
	u32 kind, gfp;
	s32 order;
	u32 known;
};

TASK_SLOT(struct cause);

/* The last try to get memory before an OOM kill tells whose limit it is about. */
inline_ int reclaims(u64 *ctx, u32 args, u32 kind)
{
	struct cause *c = current_slot(true);
	s32 order;
	u32 gfp;

	if (!c)
		return 0;
	reclaim_args(ctx, args, &order, &gfp);
	c->kind = kind;
	c->order = order;
	c->gfp = gfp;
	c->known = true;
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int on_direct(u64 *ctx)
{
	return reclaims(ctx, tp_args_mm_vmscan_direct_reclaim_begin, OOMKILL_MACHINE);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int on_memcg(u64 *ctx)
{
	return reclaims(ctx, tp_args_mm_vmscan_memcg_reclaim_begin, OOMKILL_MEMCG);
}

/* Victims that end already are marked too, and get no signal. */
SEC("tp_btf/signal_generate")
int on_signal(u64 *ctx)
{
	struct cause *c;

	if ((u32)ctx[0] != SIGKILL || ctx[1] != SEND_SIG_PRIV)
		return 0;
	c = current_slot(true);
	if (c)
		c->killed = ctx[2];
	return 0;
}

/* 6.2 made the counters per CPU (f1a7941243c1): `count` lacks some pages of each CPU. */
struct mm_rss_stat___old {
	atomic_long_t count[4];
} __attribute__((preserve_access_index));

struct mm_struct___old_rss {
	struct mm_rss_stat___old rss_stat;
} __attribute__((preserve_access_index));

#define RSS(mm, n)                                                                   \
	({                                                                           \
		s64 pages_ = bpf_core_type_exists(struct mm_rss_stat___old) ?        \
				     BPF_CORE_READ((struct mm_struct___old_rss *)mm, \
						   rss_stat.count[n].counter) :      \
				     BPF_CORE_READ(mm, rss_stat[n].count);           \
		pages_ > 0 ? pages_ : 0;                                             \
	})

inline_ void describe_memory(struct oomkill_event *e, struct mm_struct *mm)
{
	e->file = RSS(mm, 0);
	e->anon = RSS(mm, 1);
	e->swapped = RSS(mm, 2);
	e->shmem = RSS(mm, 3);
	e->total = BPF_CORE_READ(mm, total_vm);
	e->page_tables = BPF_CORE_READ(mm, pgtables_bytes.counter);
}

/* 6.15 renamed it (633488947ef6). */
struct kernfs_node___old_parent {
	struct kernfs_node *parent;
} __attribute__((preserve_access_index));

inline_ struct kernfs_node *parent_of(struct kernfs_node *kn)
{
	if (bpf_core_field_exists(kn->__parent))
		return BPF_CORE_READ(kn, __parent);
	return BPF_CORE_READ((struct kernfs_node___old_parent *)kn, parent);
}

/* The record lies where the verifier knows nothing of what is read back: see struct walked. */
inline_ void describe_path(struct oomkill_event *e, struct kernfs_node *kn)
{
	volatile u32 *bytes = &e->path_bytes;

	for (u32 i = 0; i < LEVELS; i++) {
		struct kernfs_node *parent = parent_of(kn);
		u32 used = *bytes;
		long n;

		if (!parent)
			return;
		if (used > OOMKILL_PATH - NAME_ROOM)
			break;
		n = bpf_probe_read_kernel_str(e->path + used, NAME_ROOM, BPF_CORE_READ(kn, name));
		if (n < 0)
			break;
		*bytes = used + n;
		kn = parent;
	}
	e->path_cut = true;
}

inline_ void describe_memcg(struct oomkill_event *e, struct task_struct *victim)
{
	struct css_set *set = BPF_CORE_READ(victim, cgroups);
	u64 least = -1ULL, usage, max;
	struct cgroup_subsys_state *css = NULL;
	struct page_counter *counter;
	struct kernfs_node *kn;

	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		return;
	bpf_core_read(&css, sizeof(css),
		      &set->subsys[bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id)]);
	if (!css)
		return;
	kn = BPF_CORE_READ(css, cgroup, kn);
	e->memcg = BPF_CORE_READ(kn, id);
	describe_path(e, kn);
	counter = (void *)css - bpf_core_field_offset(struct mem_cgroup, css) +
		  bpf_core_field_offset(struct mem_cgroup, memory);
	for (u32 i = 0; i < LEVELS && counter; i++) {
		usage = BPF_CORE_READ(counter, usage.counter);
		max = BPF_CORE_READ(counter, max);
		if (since(usage, max) < least) {
			least = since(usage, max);
			e->limit = max;
		}
		counter = BPF_CORE_READ(counter, parent);
	}
}

/* In the context of the task that found no memory. */
SEC("tp_btf/mark_victim")
int on_victim(u64 *ctx)
{
	struct task_struct *victim = (void *)ctx[0];
	struct cause *c = current_slot(false);
	struct oomkill_event *e;

	if (!keep_task(victim))
		return 0;
	e = emit_begin_stack(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	identify_task(&e->victim, victim);
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
	e->oom_score_adj = victim->signal->oom_score_adj;
	describe_memory(e, BPF_CORE_READ(victim, mm));
	describe_memcg(e, victim);
	emit_end_stack(ctx, e, sizeof(*e));
	return 0;
}
