// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* biostacks: block I/O latency by the stack that submitted it. */
#include "lib/block/block_io.bpf.h"
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/stack/cpu_walk.bpf.h"
#include "lib/stack/stack.bpf.h"
#include "lib/core/program.bpf.h"
#include "block/biostacks.h"

HISTOGRAM(latencies, struct biostacks_key)

inline_ bool io_has_end(void)
{
	return true;
}

inline_ void identify_owner(void *ctx, struct block_owner *owner, struct bio *bio)
{
	identify_submitter(&owner->who, bio);
	owner->kernel_stack = stack_kernel ? stack_of_kernel(ctx, 0) : 0;
	owner->user_stack = stack_user ? stack_of_user(ctx, 0) : 0;
}

PROGRAM(on_insert, "tp_btf/block_rq_insert", io_inserted(insert_rq(ctx)))
PROGRAM(on_issue, "tp_btf/block_rq_issue", io_issue(issue_rq(ctx)))

TRACING(on_complete, "tp_btf/block_rq_complete")
{
	struct request *rq = (struct request *)ctx[0];
	struct block_io *s = io_completed(rq, ctx[2]);
	struct biostacks_key key = {};

	if (!s)
		return 0;
	if (s->owner.who.known) {
		key.kernel_stack = s->owner.kernel_stack;
		key.user_stack = s->owner.user_stack;
		key.pid = s->owner.who.pid;
		__builtin_memcpy(key.comm, s->owner.who.comm, sizeof(key.comm));
	}
	key.disk = rq_disk(rq);
	latencies_add_of(&key, since(s->inserted ? s->inserted : s->issued, bpf_ktime_get_ns()),
			 &s->owner.who);
	io_ended(rq, s);
	return 0;
}
