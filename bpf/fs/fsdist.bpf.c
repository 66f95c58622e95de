// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* fsdist: latency of operations of file systems. */
#include "lib/aggregate.bpf.h"
#include "lib/fs_call.bpf.h"
#include "fs/fsdist.h"

HISTOGRAM(latencies, struct fsdist_key)

SEC("tp_btf/sys_exit")
int on_exit(u64 *ctx)
{
	struct fs_call *call = fs_call_ended((void *)ctx[0], ctx[1]);
	struct fsdist_key key = {};

	if (!call)
		return 0;
	if (!wanted_types[0].name[0])
		key.type = call->type;
	key.operation = call->operation;
	latencies_add(&key, call->latency);
	return 0;
}

SEC("tp_btf/sys_enter")
int on_enter(u64 *ctx)
{
	fs_call_entered((void *)ctx[0], (s32)ctx[1]);
	return 0;
}
