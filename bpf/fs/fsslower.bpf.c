// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* fsslower: operations of file systems that take long. */
#include "lib/fs_call.bpf.h"
#include "lib/text.bpf.h"
#include "fs/fsslower.h"

OPT(__u64, min_ns);

struct slow_record {
	struct walked walked;
	struct fsslower_event event;
	char text[PATH_ROOM];
};

SCRATCH(records, struct slow_record);

SEC("tp_btf/sys_exit")
int on_exit(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	struct fs_call *call = fs_call_ended(regs, ctx[1]);
	struct fsslower_event *e;
	struct slow_record *r;
	struct file *file;
	u32 text;

	if (!call)
		return 0;
	if (call->latency < min_ns) {
		count(LEDGER_FILTERED);
		return 0;
	}
	/* Another thread may have closed it, and another file have its descriptor. */
	file = current_file(call->fd);
	if (file != call->file) {
		count(LEDGER_UNMATCHED);
		return 0;
	}
	r = scratch(&records);
	if (!r)
		return 0;
	e = &r->event;
	__builtin_memset(e, 0, sizeof(*e));
	e->head.time_ns = call->end;
	e->latency_ns = call->latency;
	e->operation = call->operation;
	e->type = call->type;
	e->result = ctx[1];
	if (call->operation <= FS_WRITE)
		e->offset = fs_offset(call, file, regs, ctx[1]);
	identify_current(&e->who);
	file_identity(&e->file, file);
	e->mode = BPF_CORE_READ(file, f_inode, i_mode);
	e->path_kind = file_path(&r->walked, r->text, file);
	if (e->path_kind == PATH_KIND_CUT)
		count(LEDGER_TRUNCATED);
	e->path.at = sizeof(*e);
	text = walked_bytes(&r->walked);
	e->path.bytes = text;
	emit_copy(e, sizeof(*e) + text);
	return 0;
}

SEC("tp_btf/sys_enter")
int on_enter(u64 *ctx)
{
	fs_call_entered((void *)ctx[0], (s32)ctx[1]);
	return 0;
}
