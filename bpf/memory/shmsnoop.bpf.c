// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* shmsnoop: System V shared memory calls. */
#include "lib/core/filter.bpf.h"
#include "lib/core/text.bpf.h"
#include "memory/shmsnoop.h"

/* The current call of a task. */
struct shm_call {
	u64 start; /* 0: none in progress */
	u64 args[3];
	u32 call;
	u32 pad;
};

TASK_SLOT(struct shm_call);

/* The kernel rejects a program that reads more arguments than the call has. */
inline_ int begin(struct enter_ctx *ctx, u32 call, const int arguments)
{
	struct shm_call *c;

	if (!keep_current())
		return 0;
	c = current_slot(true);
	if (!c)
		return 0;
	c->call = call;
	for (int i = 0; i < 3; i++)
		c->args[i] = i < arguments ? ctx->args[i] : 0;
	c->start = bpf_ktime_get_ns();
	return 0;
}

#define ON_CALL(name, call, arguments)              \
	SEC("tracepoint/syscalls/sys_enter_" #name) \
	int on_##name(struct enter_ctx *ctx)        \
	{                                           \
		return begin(ctx, call, arguments); \
	}

ON_CALL(shmget, SHMSNOOP_GET, 3)
ON_CALL(shmat, SHMSNOOP_AT, 3)
ON_CALL(shmdt, SHMSNOOP_DT, 1)
ON_CALL(shmctl, SHMSNOOP_CTL, 3)

SEC("tracepoint/syscalls/sys_exit_shmget,sys_exit_shmat,sys_exit_shmdt,sys_exit_shmctl")
int on_exit(struct exit_ctx *ctx)
{
	struct shm_call *c = current_slot(false);
	struct shmsnoop_event *e;

	/* No start: filtered, not tracked (counted there), or before the start of tracing. */
	if (!c || !c->start)
		return 0;
	e = emit_begin(sizeof(*e));
	if (e) {
		e->head.time_ns = bpf_ktime_get_ns();
		e->latency_ns = since(c->start, e->head.time_ns);
		e->call = c->call;
		e->ret = ctx->ret;
		for (int i = 0; i < 3; i++)
			e->args[i] = c->args[i];
		identify_current(&e->who);
		emit_end(e);
	}
	c->start = 0;
	return 0;
}
