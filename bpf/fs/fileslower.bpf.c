// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* fileslower: reads and writes of files that take long. */
#include "lib/file_io.bpf.h"
#include "lib/text.bpf.h"
#include "fs/fileslower.h"

OPT(__u64, min_ns);

struct slow_call {
	u64 start; /* 0: none under way */
	struct file_io io;
};

TASK_SLOT(struct slow_call);

struct slow_record {
	struct walked walked;
	struct fileslower_event event;
	char text[PATH_ROOM];
};

SCRATCH(records, struct slow_record);

SEC("tp_btf/sys_exit")
int on_exit(u64 *ctx)
{
	struct slow_call *call = current_slot(false);
	u64 now = bpf_ktime_get_ns(), start;
	struct fileslower_event *e;
	struct slow_record *r;
	struct file *file;
	u32 text;

	if (!call || !call->start)
		return 0;
	start = call->start;
	call->start = 0;
	if (since(start, now) < min_ns) {
		count(LEDGER_FILTERED);
		return 0;
	}
	/* Another thread may have closed it, and another file have its descriptor. */
	file = current_file(call->io.fd);
	if (file != call->io.file) {
		count(LEDGER_UNMATCHED);
		return 0;
	}
	r = scratch(&records);
	if (!r)
		return 0;
	e = &r->event;
	__builtin_memset(e, 0, sizeof(*e));
	e->head.time_ns = now;
	e->latency_ns = since(start, now);
	e->result = ctx[1];
	identify_current(&e->who);
	e->write = call->io.write;
	e->mode = call->io.mode & MODE_FORMAT;
	file_identity(&e->file, file);
	e->path_kind = file_path(&r->walked, r->text, file);
	e->path.at = sizeof(*e);
	text = walked_bytes(&r->walked);
	e->path.bytes = text;
	emit_copy(e, sizeof(*e) + text);
	return 0;
}

SEC("tp_btf/sys_enter")
int on_enter(u64 *ctx)
{
	struct file_call_io io;
	struct slow_call *call;

	if (!file_call_io(&io, (void *)ctx[0], (s32)ctx[1]))
		return 0;
	call = current_slot(true);
	if (!call)
		return 0;
	call->io = io.first.file ? io.first : io.second;
	call->start = bpf_ktime_get_ns();
	return 0;
}
