// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* fileslower: slow reads and writes of files. */
#include "lib/fs/all_files.bpf.h"
#include "lib/fs/timed_ring_io.bpf.h"
#include "lib/paths/path_record.bpf.h"
#include "lib/paths/file_identity.bpf.h"
#include "fs/fileslower.h"

RECORD(fileslower_event);

OPT(__u64, min_ns);

struct slow_call {
	u64 start; /* 0: none in progress */
	struct file_io io;
};

TASK_SLOT(struct slow_call);

PATH_RECORD(slow_record, struct fileslower_event);

SCRATCH(records, struct slow_record);
SCRATCH(ring_records, struct slow_record);

inline_ bool slow_enough(u64 latency)
{
	if (latency >= min_ns)
		return true;
	return filtered();
}

/* All but the owner, the end time, and the path. */
inline_ void describe(struct fileslower_event *e, const struct file_io *io, u64 latency, s64 result)
{
	__builtin_memset(e, 0, sizeof(*e));
	e->latency_ns = latency;
	e->result = result;
	e->write = io->write;
	e->mode = io->mode & MODE_FORMAT;
	file_identity(&e->file, io->file);
}

TRACING(on_ring_end, "tp_btf/io_uring_complete")
{
	struct slow_record *r;
	struct ring_io ended;
	struct file_io io;
	u64 now, latency;

	if (!file_ring_io(&io, ctx, &ended))
		return 0;
	now = bpf_ktime_get_ns();
	latency = since(ended.start, now);
	if (!slow_enough(latency))
		return 0;
	r = scratch(&ring_records);
	if (!r)
		return 0;
	describe(&r->event, &io, latency, ended.result);
	r->event.head.time_ns = now;
	identify_known(&r->event.who, io.task);
	emit_path(r, file_path_of(&r->walked, r->text, io.file, io.task));
	return 0;
}

TRACING(on_exit, "tp_btf/sys_exit")
{
	struct slow_call *call = current_slot(false);
	u64 now = bpf_ktime_get_ns(), start;
	struct slow_record *r;
	struct file *file;

	if (!call || !call->start)
		return 0;
	start = call->start;
	call->start = 0;
	if (!slow_enough(since(start, now)))
		return 0;
	/* Another thread may have closed it, and the descriptor may be another file's. */
	file = current_file(call->io.fd);
	if (file != call->io.file)
		return counted(LEDGER_UNMATCHED);
	r = scratch(&records);
	if (!r)
		return 0;
	describe(&r->event, &call->io, since(start, now), ctx[1]);
	r->event.head.time_ns = now;
	identify_current(&r->event.who);
	emit_path(r, file_path(&r->walked, r->text, file));
	return 0;
}

TRACING(on_enter, "tp_btf/sys_enter")
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
