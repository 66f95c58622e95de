// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bitesize: block I/O sizes by submitting command. */
#include "lib/block/block_io.bpf.h"
#include "lib/aggregate/aggregate.bpf.h"
#include "block/bitesize.h"

OPT(bool, by_disk);
OPT(bool, by_operation);

COMM_HISTOGRAM(sizes, struct bitesize_key)

inline_ bool io_has_end(void)
{
	return false;
}

inline_ void identify_owner(void *ctx, struct block_owner *owner, struct bio *bio)
{
	identify_comm(owner, bio);
}

TRACING(on_issue, "tp_btf/block_rq_issue")
{
	struct request *rq = issue_rq(ctx);
	struct bitesize_key key = {};
	struct block_io *s;
	bool first;

	s = io_issued(rq, 0, &first);
	if (!s || !first || !s->bytes)
		return 0;
	if (s->owner.who.known)
		__builtin_memcpy(key.comm, s->owner.who.comm, sizeof(key.comm));
	if (by_disk)
		key.disk = rq_disk(rq);
	if (by_operation)
		key.flags = rq->cmd_flags & 0xff;
	if (by_disk || by_operation || owner_parts)
		sizes_add_of(&key, s->bytes, &s->owner.who);
	else
		sizes_add_comm(&key, s->bytes);
	return 0;
}
