// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sigsnoop: signals, their senders and receivers, and the outcome. */
#include "lib/core/pidns.bpf.h"
#include "lib/syscall/call_slot.bpf.h"
#include "syscall/sigsnoop.h"

RECORD(sigsnoop_event);

OPT(bool, calls_only);
OPT(bool, failed_only);
OPT(__u64, wanted_signals); /* bit n - 1 for signal n; 0: all */
OPT(__u32, wanted_target);

/* Values in place of a siginfo, and of si_code. */
#define SEND_SIG_NOINFO 0 /* from a process */
#define SEND_SIG_PRIV 1   /* from the kernel */
#define SI_KERNEL 0x80
#define SI_TIMER (-2)

/* TRACE_SIGNAL_* */
#define OUTCOME_LOSE_INFO 4 /* delivered, but without its siginfo */

struct sig_call {
	u64 under_way;
	struct sigsnoop_event event;
};

TASK_SLOT(struct sig_call);

inline_ bool signal_wanted(u32 signal)
{
	if (!wanted_signals || (signal - 1 < 64 && wanted_signals >> (signal - 1) & 1))
		return true;
	return filtered();
}

inline_ int begin(u32 call, s64 given, u32 signal)
{
	struct sig_call *c = signal_wanted(signal) ? wanted_slot() : NULL;

	if (!c)
		return 0;
	__builtin_memset(&c->event, 0, sizeof(c->event));
	c->event.call = call;
	c->event.given = given;
	c->event.signal = signal;
	c->under_way = true;
	return 0;
}

ON_ENTRY(kill, begin(SIGSNOOP_KILL, (s32)ctx->args[0], ctx->args[1]))
ON_ENTRY(tkill, begin(SIGSNOOP_TKILL, (s32)ctx->args[0], ctx->args[1]))
ON_ENTRY(tgkill, begin(SIGSNOOP_TGKILL, (s32)ctx->args[0], ctx->args[2]))
ON_ENTRY(rt_sigqueueinfo, begin(SIGSNOOP_RT_SIGQUEUEINFO, (s32)ctx->args[0], ctx->args[1]))
ON_ENTRY(rt_tgsigqueueinfo, begin(SIGSNOOP_RT_TGSIGQUEUEINFO, (s32)ctx->args[0], ctx->args[2]))
ON_ENTRY(pidfd_send_signal, begin(SIGSNOOP_PIDFD_SEND_SIGNAL, SIGSNOOP_BY_PIDFD, ctx->args[1]))

inline_ s32 code_of(struct kernel_siginfo *info)
{
	switch ((u64)info) {
	case SEND_SIG_NOINFO:
		return 0;
	case SEND_SIG_PRIV:
		return SI_KERNEL;
	}
	return BPF_CORE_READ(info, si_code);
}

inline_ void sent_to(struct sigsnoop_event *e, struct task_struct *t, s32 code, u32 outcome)
{
	e->code = code;
	e->outcome = outcome;
	e->sent = 1;
	identify_task(&e->target, t);
	e->target_pidns = pidns_of(t);
}

/* For the running task's current call; ignores signals sent by interrupts meanwhile. Of several
 * receivers, the event has the first one, or the wanted one. */
inline_ void sent_by_call(u32 signal, struct task_struct *t, s32 code, u32 outcome)
{
	struct sig_call *c = current_slot(false);
	u32 sent;

	if (!c || !c->under_way || c->event.signal != signal || code > 0 || code == SI_TIMER)
		return;
	sent = c->event.sent;
	if (!sent || (wanted_target && task_tgid(t) == wanted_target))
		sent_to(&c->event, t, code, outcome);
	c->event.sent = sent + 1;
}

/* Does the running task number processes as the tool's user does? */
inline_ bool numbers_as_viewer(void)
{
	struct pid *pid = BPF_CORE_READ(current_task(), thread_pid);
	u32 level = BPF_CORE_READ(pid, level);

	return view_pidns ? pidns_at(pid, level) == view_pidns : !level;
}

/* If no signal was sent, the target is only known as the sender numbers it. */
inline_ bool is_for_target(const struct sigsnoop_event *e)
{
	if (e->sent)
		return e->target.known && e->target.pid == wanted_target;
	return e->given == wanted_target && numbers_as_viewer();
}

TRACING(on_signal, "tp_btf/signal_generate")
{
	s32 code = code_of((struct kernel_siginfo *)function_arg(ctx, 1));
	struct task_struct *t = (struct task_struct *)ctx[2];
	u32 signal = (u32)ctx[0], outcome = (u32)ctx[4];
	struct sigsnoop_event *e;

	if (calls_only) {
		sent_by_call(signal, t, code, outcome);
		return 0;
	}
	if (!signal_wanted(signal) || !keep_current())
		return 0;
	if ((failed_only && (!outcome || outcome == OUTCOME_LOSE_INFO)) ||
	    (wanted_target && task_tgid(t) != wanted_target))
		return filtered();
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = bpf_ktime_get_ns();
	e->signal = signal;
	sent_to(e, t, code, outcome);
	identify_current(&e->who);
	e->pidns = current_pidns();
	return emit_end(e);
}

UNPREEMPTED(on_exit,
	    "tracepoint/syscalls/"
	    "sys_exit_kill,sys_exit_tkill,sys_exit_tgkill,sys_exit_rt_sigqueueinfo,"
	    "sys_exit_rt_tgsigqueueinfo,sys_exit_pidfd_send_signal",
	    struct exit_ctx)
{
	struct sig_call *c = current_slot(false);
	struct sigsnoop_event *e;

	if (!c || !c->under_way)
		return 0;
	c->under_way = false;
	e = &c->event;
	if ((failed_only && ctx->ret >= 0) || (wanted_target && !is_for_target(e)))
		return filtered();
	e->head.time_ns = bpf_ktime_get_ns();
	e->ret = ctx->ret;
	identify_current(&e->who);
	e->pidns = current_pidns();
	emit_copy(e, sizeof(*e));
	return 0;
}
