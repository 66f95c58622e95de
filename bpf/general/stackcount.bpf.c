// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* stackcount: stacks that lead to functions, tracepoints and USDT probes. */
#include "lib/stack/task_walk.bpf.h"
#include "lib/stack/stack_counts.bpf.h"
#include "lib/core/cpu.bpf.h"
#include "lib/stack/stack.bpf.h"
#include "lib/targets/each_target.bpf.h"

STACK_COUNTS(1)

OPT(bool, by_process);

/* Set during a walk of the task's stack: an interrupt on top of it may be traced, too. */
struct walking {
	u64 on;
};

TASK_SLOT(struct walking);

/* At a user function, the kernel stack is only that of the trap. */
inline_ int at_target(void *ctx, u64 id, bool user)
{
	struct stack_row entry = {};
	struct stack_party *p = &entry.party[0];
	struct walking *w;

	if (id >= target_count || !keep_here())
		return 0;
	if (by_process || stack_by_task) {
		p->tgid = p->tid = current_tgid();
		party_name_current(p);
	}
	w = current_slot(true);
	if (!w || w->on)
		return counted(LEDGER_UNTRACKED);
	w->on = 1;
	if (!user && stack_kernel)
		p->kernel = stack_of_kernel(ctx, 0);
	if (stack_user)
		p->user = stack_of_user(ctx, 0);
	stack_add(&entry, NULL, 0);
	w->on = 0;
	return 0;
}
