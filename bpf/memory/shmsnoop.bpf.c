// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* shmsnoop: System V shared memory calls. */
#include "lib/core/emit.bpf.h"
#include "lib/syscall/call_slot.bpf.h"
#include "memory/shmsnoop.h"

RECORD(shmsnoop_event);

/* The current call of a task. */
struct shm_call {
	u64 start; /* 0: none in progress */
	u64 args[3];
	u32 call;
	u32 pad;
};

CALL_SLOT(struct shm_call)

inline_ int begin(struct enter_ctx *ctx, u32 call, const int arguments)
{
	struct shm_call *c = wanted_slot();

	if (!c)
		return 0;
	c->call = call;
	for (int i = 0; i < 3; i++)
		c->args[i] = i < arguments ? ctx->args[i] : 0;
	c->start = bpf_ktime_get_ns();
	return 0;
}

ON_ENTRY(shmget, begin(ctx, SHMSNOOP_GET, 3))
ON_ENTRY(shmat, begin(ctx, SHMSNOOP_AT, 3))
ON_ENTRY(shmdt, begin(ctx, SHMSNOOP_DT, 1))
ON_ENTRY(shmctl, begin(ctx, SHMSNOOP_CTL, 3))

UNPREEMPTED(on_exit,
	    "tracepoint/syscalls/sys_exit_shmget,sys_exit_shmat,sys_exit_shmdt,sys_exit_shmctl",
	    struct exit_ctx)
{
	u64 start;
	struct shm_call *c = call_ends(&start);
	struct shmsnoop_event *e = c ? emit_begin(sizeof(*e)) : NULL;

	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	e->latency_ns = since(start, e->head.time_ns);
	e->call = c->call;
	e->ret = ctx->ret;
	for (int i = 0; i < 3; i++)
		e->args[i] = c->args[i];
	identify_current(&e->who);
	return emit_end(e);
}
