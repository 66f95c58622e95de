// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* mmapsnoop: files mapped into memory. */
#include "lib/core/filter.bpf.h"
#include "lib/paths/path_record.bpf.h"
#include "lib/syscall/syscall.bpf.h"
#include "lib/paths/file_identity.bpf.h"
#include "memory/mmapsnoop.h"

RECORD(mmapsnoop_event);

OPT(bool, anonymous_too);
OPT(bool, failed_only);

/* The current call of a task. */
struct map_call {
	u64 args[6];
	struct file *file; /* NULL: none */
	u64 under_way;
};

TASK_SLOT(struct map_call);

PATH_RECORD(map_record, struct mmapsnoop_event);
SCRATCH(records, struct map_record);

UNPREEMPTED(on_enter, "tracepoint/syscalls/sys_enter_mmap", struct enter_ctx)
{
	bool anonymous = ctx->args[3] & MAP_ANONYMOUS;
	struct map_call *c;

	if (!keep_current())
		return 0;
	if (anonymous && !anonymous_too)
		return filtered();
	c = current_slot(true);
	if (!c)
		return 0;
	for (int i = 0; i < 6; i++)
		c->args[i] = ctx->args[i];
	c->file = anonymous ? NULL : current_file(c->args[4]);
	c->under_way = true;
	return 0;
}

/* Returns the length of the path, which follows the record. */
inline_ u32 describe_file(struct map_record *r, struct file *file)
{
	struct mmapsnoop_event *e = &r->event;
	u32 text;

	e->mode = BPF_CORE_READ(file, f_inode, i_mode);
	file_identity(&e->file, file);
	e->path_kind = file_path(&r->walked, r->text, file);
	text = walked_bytes(&r->walked);
	e->path.bytes = text;
	return text;
}

UNPREEMPTED(on_exit, "tracepoint/syscalls/sys_exit_mmap", struct exit_ctx)
{
	struct map_call *c = current_slot(false);
	struct mmapsnoop_event *e;
	struct map_record *r;
	u32 text = 0;

	/* No start: filtered, not tracked (counted there), or before the start of tracing. */
	if (!c || !c->under_way)
		return 0;
	c->under_way = false;
	if (failed_only && !call_failed(ctx->ret))
		return filtered();
	/* Another thread may have closed it, and the descriptor may be another file's. */
	if (c->file && current_file(c->args[4]) != c->file)
		return counted(LEDGER_UNMATCHED);
	r = scratch(&records);
	if (!r)
		return 0;
	e = &r->event;
	__builtin_memset(e, 0, sizeof(*e));
	e->head.time_ns = bpf_ktime_get_ns();
	e->address = c->args[0];
	e->bytes = c->args[1];
	e->prot = c->args[2];
	e->flags = c->args[3];
	e->offset = c->args[5];
	e->ret = ctx->ret;
	identify_current(&e->who);
	e->path.at = sizeof(*e);
	if (c->file)
		text = describe_file(r, c->file);
	emit_copy(e, sizeof(*e) + text);
	return 0;
}
