// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* syncsnoop: calls that flush files or file systems. */
#include "lib/paths/path_record.bpf.h"
#include "lib/syscall/call_slot.bpf.h"
#include "syscall/syncsnoop.h"

RECORD(syncsnoop_event);

OPT(__u64, min_ns);

struct sync_call {
	u64 start; /* 0: none in progress */
	struct file *file;
	u32 fd;
	u32 call;
};

CALL_SLOT(struct sync_call)

PATH_RECORD(sync_record, struct syncsnoop_event);
SCRATCH(records, struct sync_record);

inline_ int begin(u32 call, u32 fd)
{
	struct sync_call *c = wanted_slot();

	if (!c)
		return 0;
	c->call = call;
	c->fd = fd;
	c->file = call >= SYNCSNOOP_FSYNC ? current_file(fd) : NULL;
	c->start = bpf_ktime_get_ns();
	return 0;
}

ON_ENTRY(sync, begin(SYNCSNOOP_SYNC, 0)) /* has no argument to read */
ON_ENTRY(msync, begin(SYNCSNOOP_MSYNC, 0))
ON_ENTRY(fsync, begin(SYNCSNOOP_FSYNC, ctx->args[0]))
ON_ENTRY(fdatasync, begin(SYNCSNOOP_FDATASYNC, ctx->args[0]))
ON_ENTRY(sync_file_range, begin(SYNCSNOOP_SYNC_FILE_RANGE, ctx->args[0]))
ON_ENTRY(syncfs, begin(SYNCSNOOP_SYNCFS, ctx->args[0]))

UNPREEMPTED(on_exit,
	    "tracepoint/syscalls/"
	    "sys_exit_sync,sys_exit_msync,sys_exit_fsync,sys_exit_fdatasync,"
	    "sys_exit_sync_file_range,sys_exit_syncfs",
	    struct exit_ctx)
{
	u64 start, now = bpf_ktime_get_ns();
	struct sync_call *c = call_ends(&start);
	struct syncsnoop_event *e;
	struct sync_record *r;
	struct file *file;
	u32 text = 0;

	r = c ? scratch(&records) : NULL;
	if (!r)
		return 0;
	e = &r->event;
	__builtin_memset(e, 0, sizeof(*e));
	e->head.time_ns = now;
	e->latency_ns = since(start, now);
	if (e->latency_ns < min_ns)
		return filtered();
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
