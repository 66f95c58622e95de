// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* statsnoop: calls of the stat family, with their paths. */
#include "lib/paths/early_path.bpf.h"
#include "lib/paths/path_record.bpf.h"
#include "lib/core/since.bpf.h"
#include "lib/syscall/call_slot.bpf.h"
#include "syscall/statsnoop.h"

RECORD(statsnoop_event);

OPT(bool, failed_only);

/*
 * The record of a task's current call, including its path if that is
 * short: it is then sent from here. Others are read when the call ends.
 */
struct stat_call {
	u64 start; /* 0: none in progress */
	u64 name;
	struct statsnoop_event event;
	char path[GIVEN_EARLY + 2];
};

CALL_SLOT(struct stat_call)

PATH_RECORD(stat_record, struct statsnoop_event);
SCRATCH(records, struct stat_record);

inline_ int begin(u32 call, s32 dfd, u64 name)
{
	struct stat_call *c;

	if (!tracing_since) /* attaching programs also calls stat */
		return 0;
	c = wanted_slot();
	if (!c)
		return 0;
	c->name = name;
	c->event.call = call;
	c->event.dfd = dfd;
	c->event.what = given_early(c->path, name, &c->event.path) ? STATSNOOP_GIVEN : 0;
	c->start = bpf_ktime_get_ns();
	return 0;
}

/* The path of the descriptor's file, which another thread may have closed meanwhile. */
inline_ u32 path_of_file(struct stat_record *r)
{
	struct statsnoop_event *e = &r->event;
	struct file *file = current_file(e->dfd);

	if (!file)
		return 0;
	e->mode = FOLLOW(file, file, f_inode, i_mode);
	e->inode = FOLLOW(file, file, f_inode, i_ino);
	e->what |= STATSNOOP_FILE;
	e->path_kind = count_cut(file_path(&r->walked, r->text, file));
	return walked_bytes(&r->walked);
}

/* Reads the passed path again, now that its memory is present. */
inline_ u32 path_given(struct stat_record *r, struct stat_call *c)
{
	struct statsnoop_event *e = &r->event;
	bool cut = false;
	s64 n;

	n = text_user(r->text, GIVEN_MOST, (void *)c->name, &cut);
	if (n >= 0)
		e->what |= cut ? STATSNOOP_GIVEN | STATSNOOP_CUT : STATSNOOP_GIVEN;
	/* If the kernel could not read the name either (EFAULT), the error is the program's. */
	if (cut || (n < 0 && e->ret != -EFAULT))
		count(LEDGER_TRUNCATED);
	return n < 0 ? 0 : n & GIVEN_MOST;
}

UNPREEMPTED(on_exit,
	    "tracepoint/syscalls/"
	    "sys_exit_newstat,sys_exit_newlstat,sys_exit_newfstat,sys_exit_newfstatat,"
	    "sys_exit_statx,sys_exit_statfs,sys_exit_fstatfs",
	    struct exit_ctx)
{
	u64 start, bytes;
	struct stat_call *c = call_ends(&start);
	struct statsnoop_event *e;
	struct stat_record *r;

	if (!c)
		return 0;
	e = &c->event;
	e->head.time_ns = start;
	e->latency_ns = since(start, bpf_ktime_get_ns());
	if (failed_only && ctx->ret >= 0)
		return filtered();
	e->ret = ctx->ret;
	identify_current(&e->who);
	e->path.at = sizeof(*e);
	bytes = e->path.bytes;
	if (e->what & STATSNOOP_GIVEN && c->path[0] && bytes <= GIVEN_EARLY) {
		emit_copy(e, sizeof(*e) + bytes);
		return 0;
	}
	r = scratch(&records);
	if (!r)
		return 0;
	r->event = *e;
	e = &r->event;
	/* With an empty path or NULL, the call is for the descriptor. */
	bytes = c->name && !(e->what & STATSNOOP_GIVEN) ? path_given(r, c) : path_of_file(r);
	e->path.bytes = bytes;
	emit_copy(e, sizeof(*e) + bytes);
	return 0;
}

ON_ENTRY(newstat, begin(STATSNOOP_STAT, AT_CWD, ctx->args[0]))
ON_ENTRY(newlstat, begin(STATSNOOP_LSTAT, AT_CWD, ctx->args[0]))
ON_ENTRY(statfs, begin(STATSNOOP_STATFS, AT_CWD, ctx->args[0]))
ON_ENTRY(newfstatat, begin(STATSNOOP_NEWFSTATAT, (s32)ctx->args[0], ctx->args[1]))
ON_ENTRY(statx, begin(STATSNOOP_STATX, (s32)ctx->args[0], ctx->args[1]))
ON_ENTRY(newfstat, begin(STATSNOOP_FSTAT, (s32)ctx->args[0], 0))
ON_ENTRY(fstatfs, begin(STATSNOOP_FSTATFS, (s32)ctx->args[0], 0))
