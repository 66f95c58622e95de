// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* biotop: block I/O by process, disk and operation. */
#include "lib/block/block_io.bpf.h"
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/program.bpf.h"
#include "block/biotop.h"

OPT(bool, queued);

TABLE(users, struct biotop_key, struct biotop_value)

inline_ bool io_has_end(void)
{
	return true;
}

inline_ void identify_owner(void *ctx, struct block_owner *owner, struct bio *bio)
{
	identify_submitter(&owner->who, bio);
}

/* Only with --queued. */
PROGRAM(on_insert, "tp_btf/block_rq_insert", io_inserted(insert_rq(ctx)))

PROGRAM(on_issue, "tp_btf/block_rq_issue", io_issue(issue_rq(ctx)))

TRACING(on_complete, "tp_btf/block_rq_complete")
{
	struct request *rq = (struct request *)ctx[0];
	struct block_io *s = io_completed(rq, ctx[2]);
	struct biotop_key key = {};
	struct biotop_value *v;

	if (!s)
		return 0;
	if (s->owner.who.known) {
		key.pid = s->owner.who.pid;
		__builtin_memcpy(key.comm, s->owner.who.comm, sizeof(key.comm));
	}
	key.disk = rq_disk(rq);
	key.flags = rq->cmd_flags & 0xff;
	v = users_row_of(&key, &s->owner.who);
	if (v) {
		__sync_fetch_and_add(&v->ios, 1);
		__sync_fetch_and_add(&v->bytes, s->bytes);
		__sync_fetch_and_add(
			&v->time_ns,
			since(queued && s->inserted ? s->inserted : s->issued, bpf_ktime_get_ns()));
	}
	io_ended(rq, s);
	return 0;
}
