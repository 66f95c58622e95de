// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* numasched: tasks that move to a CPU of another NUMA node. */
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "cpu/node.bpf.h"
#include "lib/core/program.bpf.h"
#include "cpu/numasched.h"

RECORD(numasched_event);

/* Destination of a NUMA balancing move: the CPU plus 1. */
struct intent {
	u64 cpu;
};

TASK_SLOT(struct intent);

inline_ int balances(struct task_struct *t, u32 cpu)
{
	struct intent *i = t ? task_slot_make(t) : NULL;

	if (i)
		i->cpu = cpu + 1;
	return 0;
}

PROGRAM(on_move, "tp_btf/sched_move_numa", balances((void *)ctx[0], (u32)ctx[2]))

/* Two tasks are swapped. */
TRACING(on_swap, "tp_btf/sched_swap_numa")
{
	balances((void *)ctx[0], (u32)ctx[3]);
	return balances((void *)ctx[2], (u32)ctx[1]);
}

/* Called before the task has its new CPU, but not for a new task's first CPU. */
TRACING(on_migrate, "tp_btf/sched_migrate_task")
{
	struct task_struct *t = (void *)ctx[0];
	u32 from_cpu = task_cpu(t), to_cpu = (u32)ctx[1];
	s32 from = node_of_cpu(from_cpu), to = node_of_cpu(to_cpu);
	struct intent *i = task_slot(t);
	struct numasched_event *e;
	bool balancing = false;

	if (i) {
		balancing = i->cpu == to_cpu + 1;
		i->cpu = 0;
	}
	if ((from == to && from >= 0) || !keep_task(t))
		return 0;
	if (from < 0 || to < 0)
		return counted(LEDGER_UNTRACKED);
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	e->from_node = from;
	e->to_node = to;
	e->from_cpu = from_cpu;
	e->to_cpu = to_cpu;
	e->balancing = balancing;
	identify_task(&e->who, t);
	return emit_end(e);
}
