// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* biopattern: random and sequential I/O by disk. */
#include "lib/block/block_io.bpf.h"
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/block/seek.bpf.h"
#include "block/biopattern.h"

TABLE(disks, struct biopattern_key, struct biopattern_value)
KEPT(disks, struct biopattern_key, struct biopattern_value)

inline_ bool io_has_end(void)
{
	return false;
}

inline_ void identify_owner(void *ctx, struct block_owner *owner, struct bio *bio)
{
	identify_submitter(&owner->who, bio);
}

TRACING(on_issue, "tp_btf/block_rq_issue")
{
	struct request *rq = issue_rq(ctx);
	struct biopattern_key key = {};
	bool known = false, first;
	struct biopattern_value *v;
	struct block_io *s = NULL;
	s64 distance = 0;
	u32 bytes = rq->__data_len;

	/* A flush has no position on the disk. Filtered requests also move the disk. */
	if (bytes)
		known = disk_seek(rq, &distance);
	if (filter.on || owner_parts) {
		s = io_issued(rq, 0, &first);
		if (!s || !first)
			return 0;
	} else if (!keep_disk(rq)) {
		return 0;
	}
	if (!bytes)
		return 0;
	key.disk = rq_disk(rq);
	v = disks_kept(key.disk, 0);
	if (!v)
		v = owner_parts && s ? disks_row_of(&key, &s->owner.who) :
				       disks_keep(key.disk, 0, &key);
	if (!v)
		return 0;
	__sync_fetch_and_add(&v->ios, 1);
	__sync_fetch_and_add(&v->bytes, bytes);
	if (known && distance)
		__sync_fetch_and_add(&v->random, 1);
	else if (known)
		__sync_fetch_and_add(&v->sequential, 1);
	return 0;
}
