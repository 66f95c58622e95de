// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* execsnoop: executed programs, with their arguments. */
#include "lib/core/filter.bpf.h"
#include "lib/core/parent.bpf.h"
#include "lib/syscall/call_slot.bpf.h"
#include "cpu/execsnoop.h"

RECORD(execsnoop_event);

OPT(bool, quote);
OPT(__u32, max_args);

#define FILE_MOST 1023
#define ARGS_MOST 4096
#define ARG_MOST 1023 /* of one argument, if the program was not executed */
#define ARGS_STEPS 64

struct attempt {
	u64 start; /* 0: none in progress */
	u64 file, argv;
};

TASK_SLOT(struct attempt);

/* The file, followed by the arguments. */
struct exec_record {
	u32 used, pad; /* values read back are not tracked by the verifier: paths merge */
	struct execsnoop_event event;
	char text[FILE_MOST + 1 + ARGS_MOST + ARG_MOST + 9];
};

SCRATCH(scratch_exec, struct exec_record);
SCRATCH(scratch_failed, struct exec_record);

inline_ void describe(struct exec_record *r, struct task_struct *parent, s32 ret)
{
	struct execsnoop_event *e = &r->event;

	__builtin_memset(e, 0, sizeof(*e));
	e->ret = ret;
	e->max_args = max_args;
	e->what = quote ? EXECSNOOP_QUOTE : 0;
	e->ppid = process_of(parent);
	e->cpu = bpf_get_smp_processor_id();
	bpf_core_read_str(e->parent_comm, sizeof(e->parent_comm), &parent->comm);
	e->file.at = sizeof(*e);
}

inline_ void finish(struct exec_record *r, u32 args)
{
	struct execsnoop_event *e = &r->event;

	e->args.at = sizeof(*e) + e->file.bytes;
	e->args.bytes = args;
	if (e->what & (EXECSNOOP_CUT | EXECSNOOP_NO_ARGS))
		count(LEDGER_TRUNCATED);
}

/* The new program's memory is set up, with contiguous arguments. */
TRACING(on_exec, "tp_btf/sched_process_exec")
{
	struct task_struct *t = (void *)ctx[0];
	struct linux_binprm *bprm = (void *)ctx[2];
	struct execsnoop_event *e;
	struct exec_record *r;
	u64 from, size;
	u32 file = 0;
	s64 n;

	if (!keep_parent(t) || !keep_task(t))
		return 0;
	r = scratch(&scratch_exec);
	if (!r)
		return 0;
	describe(r, t->real_parent, 0);
	e = &r->event;
	identify_task(&e->who, t);
	e->head.time_ns = bpf_ktime_get_ns();
	if (!view_pidns)
		e->who.tid = (u32)ctx[1];
	n = bpf_probe_read_kernel_str(r->text, FILE_MOST + 1, bprm->filename);
	if (n > 0)
		file = (n - 1) & FILE_MOST;
	e->file.bytes = file;
	from = t->mm->arg_start;
	size = t->mm->arg_end - from;
	if (size > ARGS_MOST) {
		size = ARGS_MOST;
		e->what |= EXECSNOOP_CUT;
	}
	barrier_var(size);
	if (size > ARGS_MOST)
		return 0;
	if (bpf_probe_read_user(r->text + file, size, (void *)from)) {
		e->what |= EXECSNOOP_NO_ARGS;
		size = 0;
	}
	finish(r, size);
	emit_copy(e, sizeof(*e) + file + size);
	return 0;
}

inline_ int begin(u64 file, u64 argv)
{
	struct attempt *a = keep_current_parent() ? wanted_slot() : NULL;

	if (!a)
		return 0;
	a->file = file;
	a->argv = argv;
	a->start = bpf_ktime_get_ns();
	return 0;
}

ON_ENTRY(execve, begin(ctx->args[0], ctx->args[1]))
ON_ENTRY(execveat, begin(ctx->args[1], ctx->args[2]))

/* Appends one argument; false: no more arguments. */
inline_ bool next_arg(struct exec_record *r, char *to, u64 argv, u32 i)
{
	u32 used = *(volatile u32 *)&r->used;
	u64 arg = 0;
	s64 n;

	if (bpf_probe_read_user(&arg, sizeof(arg), (void *)(argv + 8 * i))) {
		r->event.what |= EXECSNOOP_NO_ARGS;
		return false;
	}
	if (!arg)
		return false;
	if (used >= ARGS_MOST) {
		r->event.what |= EXECSNOOP_CUT;
		return false;
	}
	n = read_user_str(to + used, ARG_MOST + 1, (void *)arg);
	if (n < 0) {
		r->event.what |= EXECSNOOP_NO_ARGS;
		return false;
	}
	if (n == ARG_MOST + 1)
		r->event.what |= EXECSNOOP_CUT;
	*(volatile u32 *)&r->used = used + n;
	return true;
}

UNPREEMPTED(on_failed, "tracepoint/syscalls/sys_exit_execve,sys_exit_execveat", struct exit_ctx)
{
	struct attempt *a = current_slot(false);
	struct execsnoop_event *e;
	struct exec_record *r;
	u64 argv, start;
	u32 file = 0, args;
	bool cut;
	s64 n;

	if (!a || !a->start)
		return 0;
	start = a->start;
	argv = a->argv;
	a->start = 0;
	if (ctx->ret >= 0)
		return 0;
	r = scratch(&scratch_failed);
	if (!r)
		return 0;
	describe(r, BPF_CORE_READ(current_task(), real_parent), ctx->ret);
	e = &r->event;
	identify_current(&e->who);
	e->head.time_ns = start;
	n = text_user(r->text, FILE_MOST - 1, (void *)a->file, &cut);
	if (n > 0)
		file = n & FILE_MOST;
	e->file.bytes = file;
	r->used = 0;
	for (u32 i = 0; argv && i < ARGS_STEPS; i++) {
		if (!next_arg(r, r->text + file, argv, i))
			break;
		if (i == ARGS_STEPS - 1)
			e->what |= EXECSNOOP_CUT;
	}
	args = *(volatile u32 *)&r->used;
	if (args > ARGS_MOST + ARG_MOST + 1)
		return 0;
	finish(r, args);
	emit_copy(e, sizeof(*e) + file + args);
	return 0;
}
