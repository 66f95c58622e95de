/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From when to when a block request is measured, of those that the filters want; not whose it is
 * (lib/block_io.bpf.h). A tool with it has a hook for on_io_start or on_getrq with filters by task,
 * and calls span_begin() and span_end(). Where spans begin in a queue, in which a request may be
 * merged into another and never end, it defines SPAN_QUEUES first.
 */
#ifndef CORETAP_BLOCK_SPAN_BPF_H
#define CORETAP_BLOCK_SPAN_BPF_H

#include "lib/block.bpf.h"

#ifndef SPAN_QUEUES
#define SPAN_QUEUES false
#endif

struct io {
	u64 start;  /* 0: not under way */
	u64 wanted; /* by a filter; kept while it may wait for a flush */
	u64 life;   /* when the request began: one that was merged into another never ends */
};

RQ_SLOTS(struct io);

/* Of a wanted task; nothing more is known. */
BIO_SLOTS(u8);

/* Known of it in this life. Before 6.5 none tells that another one has begun. */
inline_ bool known_wanted(struct io *s, u64 life)
{
	return s && s->wanted && (!known_by_bio() || s->life == life);
}

/* The first of those that wait for it says whose a flush is: its data may be written already. */
inline_ bool wanted_flush(struct request *flush)
{
	struct request *waits = first_waiting(flush);
	u64 bio = (u64)BPF_CORE_READ(waits, bio);

	if (known_by_bio() && bpf_map_lookup_elem(&bios, &bio))
		return true;
	return known_wanted(rq_slot_read((u64)waits), BPF_CORE_READ(waits, start_time_ns)) ||
	       wanted_by_cgroup((struct bio *)bio);
}

inline_ bool wanted(struct request *rq, struct io *s)
{
	u8 one;

	if (is_flush(rq))
		return wanted_flush(rq);
	return known_wanted(s, rq->start_time_ns) || (known_by_bio() && bio_slot_take(rq, &one)) ||
	       wanted_by_cgroup(rq->bio);
}

inline_ int span_begin(struct request *rq, bool first_only)
{
	struct io *s;

	if (!keep_disk(rq))
		return 0;
	s = rq_slot(rq);
	if (filter.on && !wanted(rq, s)) {
		count(LEDGER_FILTERED);
		return 0;
	}
	if (!s)
		s = rq_slot_new(rq);
	if (!s)
		return 0;
	s->wanted = filter.on;
	if (!first_only || !s->start || s->life != rq->start_time_ns)
		s->start = bpf_ktime_get_ns();
	if (SPAN_QUEUES || filter.on)
		s->life = rq->start_time_ns;
	return 0;
}

/* Of a request that is done whole when it began; 0: it is not, or that was not seen. */
inline_ u64 span_end(struct request *rq, u32 bytes)
{
	struct io *s;
	u64 start;

	if (!rq_done(rq, bytes))
		return 0;
	s = rq_slot(rq);
	if (!s || !s->start) {
		if (missed_start(rq, s && s->wanted))
			count(LEDGER_UNMATCHED);
		if (s)
			s->wanted = 0;
		return 0;
	}
	start = s->start;
	s->start = 0;
	s->wanted = filter.on && waits_for_flush(rq);
	return start;
}

/* With a filter by task: whose request it is, while the submitter runs. */
SEC("tp_btf/block_io_start")
int on_io_start(u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	struct io *s = rq_slot(rq);

	/* Its last end was not seen; of those that only queue it could have been merged. */
	if (s && s->wanted && s->start && !SPAN_QUEUES)
		count(LEDGER_UNMATCHED);
	if (filter_matches(current_task())) {
		s = s ? s : rq_slot_new(rq);
		if (s)
			*s = (struct io){ .wanted = 1 };
		return 0;
	}
	if (s)
		s->wanted = 0; /* its last life was another task's */
	return 0;
}

/* The same before 6.5. */
SEC("tp_btf/block_getrq")
int on_getrq(u64 *ctx)
{
	u8 one = 1;

	if (filter_matches(current_task()))
		bio_slot_put(getrq_bio(ctx), &one);
	return 0;
}

#endif
