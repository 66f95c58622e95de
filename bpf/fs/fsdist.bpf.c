// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* fsdist: latency of file system operations. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/fs/fs_call.bpf.h"
#include "fs/fsdist.h"

HISTOGRAM(latencies, struct fsdist_key)

inline_ struct fsdist_key key_of(const struct fs_call *call)
{
	struct fsdist_key key = { .operation = call->operation };

	if (!wanted_types[0].name[0])
		key.type = call->type;
	return key;
}

inline_ void add(const struct fs_call *call)
{
	struct fsdist_key key = key_of(call);

	latencies_add(&key, call->latency);
}

#define ADD(place, call, path, inode, result, offset) add(call)

FS_FUNCTIONS(ADD)

TRACING(on_ring_end, "tp_btf/io_uring_complete")
{
	struct ring_io ended;
	struct fsdist_key key;
	struct fs_call call;

	if (!fs_ring_ended(ctx, &ended, &call))
		return 0;
	key = key_of(&call);
	return latencies_add_of_task(&key, call.latency, ended.task);
}

TRACING(on_exit, "tp_btf/sys_exit")
{
	struct fs_call *call = fs_call_ended((void *)ctx[0], ctx[1]);

	if (call)
		add(call);
	return 0;
}

PROGRAM(on_enter, "tp_btf/sys_enter", fs_call_entered((void *)ctx[0], (s32)ctx[1]))
