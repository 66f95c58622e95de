// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* fsslower: slow file system operations. */
#include "lib/paths/path_record.bpf.h"
#include "lib/paths/file_identity.bpf.h"
#include "fs/fs_offset.bpf.h"
#include "fs/fsslower.h"

RECORD(fsslower_event);

OPT(__u64, min_ns);

PATH_RECORD(slow_record, struct fsslower_event);

#define OF_RING FS_ENDS

SCRATCH_EACH(records, struct slow_record, FS_ENDS + 1);

inline_ bool slow_enough(const struct fs_call *call)
{
	if (call->latency >= min_ns)
		return true;
	return filtered();
}

/* All but the owner and the path. */
inline_ void describe(struct fsslower_event *e, const struct fs_call *call, struct inode *inode,
		      s64 result, u64 offset)
{
	__builtin_memset(e, 0, sizeof(*e));
	e->head.time_ns = call->end;
	e->latency_ns = call->latency;
	e->operation = call->operation;
	e->type = call->type;
	e->result = result;
	e->offset = offset;
	inode_identity(&e->file, inode);
	e->mode = FOLLOW(inode, inode, i_mode);
}

/* For a call of the running task. */
inline_ void ended(enum fs_end place, const struct fs_call *call, const struct path *path,
		   struct inode *inode, s64 result, u64 offset)
{
	struct slow_record *r = scratch_at(&records, place);

	if (!r)
		return;
	describe(&r->event, call, inode, result, offset);
	identify_current(&r->event.who);
	emit_path(r, path_here(&r->walked, r->text, path));
}

#define ENDED(place, call, path, inode, result, offset)                  \
	do {                                                             \
		if (slow_enough(call))                                   \
			ended(place, call, path, inode, result, offset); \
	} while (0)

FS_FUNCTIONS(ENDED)

TRACING(on_ring_end, "tp_btf/io_uring_complete")
{
	struct slow_record *r;
	struct ring_io request;
	struct fs_call call;
	struct file *file;

	if (!fs_ring_ended(ctx, &request, &call) || !slow_enough(&call))
		return 0;
	r = scratch_at(&records, OF_RING);
	if (!r)
		return 0;
	file = call.file;
	describe(&r->event, &call, FOLLOW(file, file, f_inode), request.result,
		 call.operation <= FS_WRITE ? request.offset : 0);
	identify_known(&r->event.who, request.task);
	emit_path(r, file_path_of(&r->walked, r->text, file, request.task));
	return 0;
}

TRACING(on_exit, "tp_btf/sys_exit")
{
	struct pt_regs *regs = (void *)ctx[0];
	struct fs_call *call = fs_call_ended(regs, ctx[1]);
	struct file *file;
	u64 offset = 0;

	if (!call || !slow_enough(call))
		return 0;
	/* Another thread may have closed it, and the descriptor may be another file's. */
	file = current_file(call->fd);
	if (file != call->file)
		return counted(LEDGER_UNMATCHED);
	if (call->operation <= FS_WRITE)
		offset = fs_offset(call, file, regs, ctx[1]);
	/* The programs at functions are not attached together with this one. */
	ended(FS_END_READ, call, &file->f_path, FOLLOW(file, file, f_inode), ctx[1], offset);
	return 0;
}

PROGRAM(on_enter, "tp_btf/sys_enter", fs_call_entered((void *)ctx[0], (s32)ctx[1]))
