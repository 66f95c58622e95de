// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* threadsnoop: new threads, and the start function of each. */
#include "lib/targets/call.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/user_code.bpf.h"
#include "cpu/threadsnoop.h"

RECORD(threadsnoop_event);

/* The task's current pthread_create(). */
struct creation {
	struct call call;
	u64 routine;
};

TASK_SLOT(struct creation);

inline_ int begin(struct pt_regs *ctx)
{
	struct creation *c = current_slot(true);

	if (c && call_begin(&c->call, ctx))
		c->routine = PT_REGS_PARM3(ctx);
	return 0;
}

inline_ int end(struct pt_regs *ctx)
{
	struct creation *c = current_slot(false);

	if (c && call_end(&c->call, ctx))
		c->call.start = 0;
	return 0;
}

ON_USER_FUNCTION("uprobe/libc:pthread_create/3", on_create, begin(ctx))
ON_USER_FUNCTION("uretprobe/libc:pthread_create/3", on_created, end(ctx))

/* Up to glibc 2.33. */
ON_USER_FUNCTION("uprobe/libpthread.so:pthread_create/3", on_create_old, begin(ctx))
ON_USER_FUNCTION("uretprobe/libpthread.so:pthread_create/3", on_created_old, end(ctx))

TRACING(on_fork, "tp_btf/sched_process_fork")
{
	struct task_struct *maker = (void *)ctx[0], *child = (void *)ctx[1];
	struct creation *c = task_slot(maker);
	struct threadsnoop_event *e;

	if (child->tgid != maker->tgid || !keep_task(maker))
		return 0;
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	e->thread = task_tid(child);
	identify_task(&e->who, maker);
	describe_code(&e->routine, c && c->call.start ? c->routine : 0);
	return emit_end_now(e);
}
