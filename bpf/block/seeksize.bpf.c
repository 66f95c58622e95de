// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* seeksize: seek distances of disks between requests, by submitting command. */
#include "lib/block/block_io.bpf.h"
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/block/seek.bpf.h"
#include "block/seeksize.h"

OPT(bool, by_disk);
OPT(bool, by_direction);

COMM_HISTOGRAM(distances, struct seeksize_key)

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
	struct seeksize_key key = {};
	bool known = false, first;
	struct block_io *s;
	s64 distance = 0;

	/* A flush has no position on the disk. Filtered requests also move the disk. */
	if (rq->__data_len)
		known = disk_seek(rq, &distance);
	s = io_issued(rq, 0, &first);
	if (!s || !first || !s->bytes || !known)
		return 0;
	if (s->owner.who.known)
		__builtin_memcpy(key.comm, s->owner.who.comm, sizeof(key.comm));
	if (by_disk)
		key.disk = rq_disk(rq);
	if (by_direction)
		key.backwards = distance < 0;
	distance = distance < 0 ? -distance : distance;
	if (by_disk || by_direction || owner_parts)
		distances_add_of(&key, distance, &s->owner.who);
	else
		distances_add_comm(&key, distance);
	return 0;
}
