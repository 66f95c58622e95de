// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* fsslower: operations of file systems that take long. */
#include "lib/fs_call.bpf.h"
#include "lib/path_record.bpf.h"
#include "fs/fsslower.h"

OPT(__u64, min_ns);

PATH_RECORD(slow_record, struct fsslower_event);

SCRATCH(records, struct slow_record);
SCRATCH(ring_records, struct slow_record);

inline_ bool slow_enough(const struct fs_call *call)
{
	if (call->latency >= min_ns)
		return true;
	count(LEDGER_FILTERED);
	return false;
}

/* All but whose it is, and the path. */
inline_ void describe(struct fsslower_event *e, const struct fs_call *call, s64 result, u64 offset)
{
	struct file *file = call->file;

	__builtin_memset(e, 0, sizeof(*e));
	e->head.time_ns = call->end;
	e->latency_ns = call->latency;
	e->operation = call->operation;
	e->type = call->type;
	e->result = result;
	e->offset = offset;
	file_identity(&e->file, file);
	e->mode = FOLLOW(file, file, f_inode, i_mode);
}

SEC("tp_btf/io_uring_complete")
int on_ring_end(u64 *ctx)
{
	struct slow_record *r;
	struct ring_io ended;
	struct fs_call call;

	if (!fs_ring_ended(ctx, &ended, &call) || !slow_enough(&call))
		return 0;
	r = scratch(&ring_records);
	if (!r)
		return 0;
	describe(&r->event, &call, ended.result, call.operation <= FS_WRITE ? ended.offset : 0);
	identify_known(&r->event.who, ended.task);
	emit_path(r, file_path_of(&r->walked, r->text, call.file, ended.task));
	return 0;
}

SEC("tp_btf/sys_exit")
int on_exit(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	struct fs_call *call = fs_call_ended(regs, ctx[1]);
	struct slow_record *r;
	struct file *file;
	u64 offset = 0;

	if (!call || !slow_enough(call))
		return 0;
	/* Another thread may have closed it, and another file have its descriptor. */
	file = current_file(call->fd);
	if (file != call->file) {
		count(LEDGER_UNMATCHED);
		return 0;
	}
	r = scratch(&records);
	if (!r)
		return 0;
	if (call->operation <= FS_WRITE)
		offset = fs_offset(call, file, regs, ctx[1]);
	describe(&r->event, call, ctx[1], offset);
	identify_current(&r->event.who);
	emit_path(r, file_path(&r->walked, r->text, file));
	return 0;
}

SEC("tp_btf/sys_enter")
int on_enter(u64 *ctx)
{
	fs_call_entered((void *)ctx[0], (s32)ctx[1]);
	return 0;
}
