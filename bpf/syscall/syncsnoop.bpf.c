// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* syncsnoop: calls that flush files or file systems. */
#include "lib/core/filter.bpf.h"
#include "lib/paths/path.bpf.h"
#include "lib/core/text.bpf.h"
#include "syscall/syncsnoop.h"

OPT(__u64, min_ns);

struct sync_call {
	u64 start; /* 0: none in progress */
	struct file *file;
	u32 fd;
	u32 call;
};

TASK_SLOT(struct sync_call);

struct sync_record {
	struct walked walked;
	struct syncsnoop_event event;
	char text[PATH_ROOM];
};

SCRATCH(records, struct sync_record);

inline_ int begin(u32 call, u32 fd)
{
	struct sync_call *c = keep_current() ? current_slot(true) : NULL;

	if (!c)
		return 0;
	c->call = call;
	c->fd = fd;
	c->file = call >= SYNCSNOOP_FSYNC ? current_file(fd) : NULL;
	c->start = bpf_ktime_get_ns();
	return 0;
}

#define CALL_ENTRY(name, call, fd)                    \
	SEC("tracepoint/syscalls/sys_enter_" #name)   \
	int on_##name(struct enter_ctx *ctx)          \
	{                                             \
		return begin(SYNCSNOOP_##call, (fd)); \
	}

CALL_ENTRY(sync, SYNC, 0) /* has no argument to read */
CALL_ENTRY(msync, MSYNC, 0)
CALL_ENTRY(fsync, FSYNC, ctx->args[0])
CALL_ENTRY(fdatasync, FDATASYNC, ctx->args[0])
CALL_ENTRY(sync_file_range, SYNC_FILE_RANGE, ctx->args[0])
CALL_ENTRY(syncfs, SYNCFS, ctx->args[0])

SEC("tracepoint/syscalls/"
    "sys_exit_sync,sys_exit_msync,sys_exit_fsync,sys_exit_fdatasync,"
    "sys_exit_sync_file_range,sys_exit_syncfs")
int on_exit(struct exit_ctx *ctx)
{
	struct sync_call *c = current_slot(false);
	struct syncsnoop_event *e;
	struct sync_record *r;
	struct file *file;
	u32 text = 0;
	u64 now;

	if (!c || !c->start)
		return 0;
	r = scratch(&records);
	if (!r)
		return 0;
	now = bpf_ktime_get_ns();
	e = &r->event;
	__builtin_memset(e, 0, sizeof(*e));
	e->head.time_ns = now;
	e->latency_ns = since(c->start, now);
	c->start = 0;
	if (e->latency_ns < min_ns) {
		count(LEDGER_FILTERED);
		return 0;
	}
	e->call = c->call;
	e->ret = ctx->ret;
	identify_current(&e->who);
	e->path.at = sizeof(*e);
	file = c->file;
	if (file) {
		e->mode = FOLLOW(file, file, f_inode, i_mode);
		e->inode = FOLLOW(file, file, f_inode, i_ino);
		/* Another thread may have closed it, and the file may have been freed. */
		if (current_file(c->fd) == file) {
			e->path_kind = count_cut(file_path(&r->walked, r->text, file));
			text = walked_bytes(&r->walked);
		} else {
			e->mode = 0;
			count(LEDGER_TRUNCATED);
		}
		e->path.bytes = text;
	}
	emit_copy(e, sizeof(*e) + text);
	return 0;
}
