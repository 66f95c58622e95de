// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* biosnoop: each block I/O with its submitter and latency. */
#include "lib/block/block_io.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/block/seek.bpf.h"
#include "block/biosnoop.h"

RECORD(biosnoop_event);

OPT(bool, queued);
OPT(bool, with_pattern);
OPT(__u64, min_ns);

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

inline_ u32 pattern_of(struct request *rq)
{
	s64 distance;

	if (!disk_seek(rq, &distance))
		return BIOSNOOP_NO_PATTERN;
	return distance ? BIOSNOOP_RANDOM : BIOSNOOP_SEQUENTIAL;
}

TRACING(on_issue, "tp_btf/block_rq_issue")
{
	struct request *rq = issue_rq(ctx);
	u32 pattern = BIOSNOOP_NO_PATTERN;
	bool first;

	/* Filtered requests also move the disk's head. */
	if (with_pattern && rq->__data_len)
		pattern = pattern_of(rq);
	io_issued(rq, pattern, &first);
	return 0;
}

inline_ int show(struct request *rq, struct block_io *s, u64 now, s32 status)
{
	u64 latency = since(s->issued, now);
	struct biosnoop_event *e;

	if (latency < min_ns)
		return filtered();
	e = emit_begin(sizeof(*e));
	if (!e)
		return 0;
	e->head.time_ns = now;
	e->latency_ns = latency;
	e->sector = s->sector;
	e->bytes = s->bytes;
	e->pattern = s->tag;
	e->disk = rq_disk(rq);
	e->flags = rq->cmd_flags;
	e->status = status;
	e->owner = s->owner.who;
	if (queued) {
		/* Without a scheduler the request may skip the queue. */
		e->queued_ns = s->inserted ? since(s->inserted, s->issued) : 0;
		e->queue_known = 1;
	}
	return emit_end(e);
}

TRACING(on_complete, "tp_btf/block_rq_complete")
{
	struct request *rq = (struct request *)ctx[0];
	struct block_io *s = io_completed(rq, ctx[2]);

	if (!s)
		return 0;
	show(rq, s, bpf_ktime_get_ns(), (s32)ctx[1]);
	io_ended(rq, s);
	return 0;
}
