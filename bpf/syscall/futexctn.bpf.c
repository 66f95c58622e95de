// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* futexctn: waits for futexes, by lock and by waiting code. */
#include "lib/aggregate/extreme.bpf.h"
#include "lib/stack/task_walk.bpf.h"
#include "lib/stack/same_walk.bpf.h"
#include "lib/syscall/syscall.bpf.h"
#include "lib/syscall/call_slot.bpf.h"
#include "syscall/futexctn.h"

OPT(bool, summary);
OPT(bool, by_thread);
OPT(__u64, only_lock);

/* The current wait of a task, or one that the kernel may continue with restart_syscall(). */
struct wait {
	u64 start; /* 0: none */
	u64 lock;  /* for FUTEX_OP_WAITV: the array of them */
	u64 stack; /* key of the last stack */
	u32 op;
	u32 may_restart;
};

TASK_SLOT(struct wait);
HISTOGRAM(waits, struct futexctn_key)
CPU_TABLE(locks, struct futexctn_key, struct futexctn_sums)

#define WAITING (1 << 0 | 1 << 6 | 1 << 9 | 1 << 11 | 1 << 13) /* wait, lock_pi, ... */

inline_ int begin(u64 lock, u32 op)
{
	struct wait *w = wanted_slot();

	if (!w)
		return 0;
	w->lock = lock;
	w->op = op;
	w->may_restart = false;
	w->start = bpf_ktime_get_ns();
	return 0;
}

inline_ enum futexctn_result result_of(s64 ret)
{
	if (ret >= 0)
		return FUTEX_WOKEN;
	if (call_interrupted(ret) || ret == -EINTR)
		return FUTEX_INTERRUPTED;
	return ret == -110 /* ETIMEDOUT */ ? FUTEX_TIMED_OUT :
	       ret == -11 /* EAGAIN */     ? FUTEX_CHANGED :
					     FUTEX_FAILED;
}

/* Of several futexes the one that woke the task; otherwise the first. */
inline_ u64 lock_of(struct wait *w, s64 ret)
{
	struct {
		u64 value, address, flags;
	} waiter = {};

	if (w->op != FUTEX_OP_WAITV)
		return w->lock;
	bpf_probe_read_user(&waiter, sizeof(waiter),
			    (void *)w->lock + (ret > 0 ? (u64)ret * sizeof(waiter) : 0));
	return waiter.address;
}

inline_ int end(struct exit_ctx *ctx)
{
	struct wait *w = current_slot(false);
	struct futexctn_key key = {};
	struct futexctn_sums *sums;
	u64 ns;

	if (!w || !w->start) /* filtered, not tracked (counted there), or not a wait */
		return 0;
	/* futex(2) has woken that many tasks; a wait returns 0, or an error. */
	if (ctx->ret > 0 && w->op != FUTEX_OP_WAITV)
		return 0;
	ns = since(w->start, bpf_ktime_get_ns());
	w->start = 0;
	w->may_restart = ctx->ret == -ERESTART_RESTARTBLOCK;
	key.lock = lock_of(w, ctx->ret);
	if (only_lock && key.lock != only_lock)
		return filtered();
	key.op = w->op;
	key.pid = current_tgid();
	if (by_thread) {
		key.tid = current_tid();
		bpf_get_current_comm(key.comm, sizeof(key.comm));
	} else {
		process_comm(key.comm);
	}
	if (!summary) {
		key.result = result_of(ctx->ret);
		key.user_stack = w->stack = often_same_stack_of_user(ctx, w->stack);
		return waits_add(&key, ns);
	}
	sums = locks_row(&key);
	if (!sums)
		return 0;
	sums->results[result_of(ctx->ret)]++;
	sums->total_ns += ns;
	extreme_add(&sums->longest, ns);
	return 0;
}

UNPREEMPTED(on_futex, "tracepoint/syscalls/sys_enter_futex", struct enter_ctx)
{
	u32 op = ctx->args[1] & 127; /* without FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME */

	return op < 32 && WAITING & 1U << op ? begin(ctx->args[0], op) : 0;
}

ON_ENTRY(futex_waitv, begin(ctx->args[0], FUTEX_OP_WAITV))
ON_ENTRY(futex_wait, begin(ctx->args[0], FUTEX_OP_WAIT2))

/* After a signal without a handler, this call continues a wait that has a timeout. */
UNPREEMPTED(on_restart, "tracepoint/syscalls/sys_enter_restart_syscall", struct enter_ctx)
{
	struct wait *w = current_slot(false);

	return w && w->may_restart ? begin(w->lock, w->op) : 0;
}

UNPREEMPTED(on_end,
	    "tracepoint/syscalls/"
	    "sys_exit_futex,sys_exit_futex_waitv,sys_exit_futex_wait,sys_exit_restart_syscall",
	    struct exit_ctx)
{
	return end(ctx);
}
