// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* fsdist: latency of operations of file systems. */
#include "lib/aggregate.bpf.h"
#include "lib/fs_call.bpf.h"
#include "fs/fsdist.h"

HISTOGRAM(latencies, struct fsdist_key)

inline_ void add(const struct fs_call *call)
{
	struct fsdist_key key = {};

	if (!wanted_types[0].name[0])
		key.type = call->type;
	key.operation = call->operation;
	latencies_add(&key, call->latency);
}

SEC("tp_btf/io_uring_complete")
int on_ring_end(u64 *ctx)
{
	struct ring_io ended;
	struct fs_call call;

	if (fs_ring_ended(ctx, &ended, &call))
		add(&call);
	return 0;
}

SEC("tp_btf/sys_exit")
int on_exit(u64 *ctx)
{
	struct fs_call *call = fs_call_ended((void *)ctx[0], ctx[1]);

	if (call)
		add(call);
	return 0;
}

SEC("tp_btf/sys_enter")
int on_enter(u64 *ctx)
{
	fs_call_entered((void *)ctx[0], (s32)ctx[1]);
	return 0;
}
