/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The start and end of the measured span of each block request that passes the filters; not
 * its owner (lib/block/block_io.bpf.h). A tool with it has a hook for on_io_start or on_getrq with
 * filters by task, and calls span_begin() and span_end(). It defines span_queues(). With
 * --by for owners it also has these hooks: owner_of_request() then is the submitter.
 *
 * Contexts: interrupts and tasks, at block tracepoints, with preemption off. Counts FILTERED,
 * UNMATCHED, UNTRACKED.
 */
#ifndef CORETAP_BLOCK_SPAN_BPF_H
#define CORETAP_BLOCK_SPAN_BPF_H

#include "lib/block/block.bpf.h"

/* Do spans start in a queue? There a request may be merged into another, and never end. */
inline_ bool span_queues(void);

struct io {
	u64 start;  /* 0: not in flight */
	u64 wanted; /* by a filter; kept while it may wait for a flush */
	u64 life;   /* start_time_ns of the request: a request merged into another never ends */
};

inline_ bool rq_idle(struct io *s)
{
	return !s->start && !s->wanted;
}

RQ_SLOTS(struct io);

/* For bios of wanted tasks. */
BIO_SLOTS(struct task_id);

/* With --by for owners: kept until forget_owner(). */
MAP(HASH, request_owners, 1, u64, struct task_id);

inline_ void own_request(struct request *rq, const struct task_id *owner)
{
	u64 key = (u64)rq;

	if (owner_parts)
		map_put(&request_owners, &key, owner);
}

/* For name_add_of(): NULL without --by, zeros if the owner is not known. */
inline_ const struct task_id *owner_of_request(struct request *rq)
{
	static const struct task_id unknown;
	const struct task_id *owner;
	u64 key = (u64)rq;

	if (!owner_parts)
		return NULL;
	owner = bpf_map_lookup_elem(&request_owners, &key);
	return owner ?: &unknown;
}

/* After the last use: the next start may not be seen. A flush may follow. */
inline_ void forget_owner(struct request *rq)
{
	u64 key = (u64)rq;

	if (owner_parts && !waits_for_flush(rq))
		bpf_map_delete_elem(&request_owners, &key);
}

/* True if known for this use of the request; before 6.5 reuse is not signalled. */
inline_ bool known_wanted(struct io *s, u64 life)
{
	return s && s->wanted && (!known_by_bio() || s->life == life);
}

/* The first waiting request determines the owner of a flush: its data may be written already. */
inline_ bool wanted_flush(struct request *flush)
{
	struct request *waits = first_waiting(flush);
	u64 bio = (u64)BPF_CORE_READ(waits, bio), key = (u64)waits;
	struct task_id *owner = known_by_bio() ? bpf_map_lookup_elem(&bios, &bio) : NULL;
	bool by_bio = owner;

	if (owner_parts && !owner)
		owner = bpf_map_lookup_elem(&request_owners, &key);
	if (owner)
		own_request(flush, owner);
	if (by_bio)
		return true;
	return known_wanted(rq_slot_read((u64)waits), BPF_CORE_READ(waits, start_time_ns)) ||
	       wanted_by_cgroup((struct bio *)bio);
}

inline_ bool wanted(struct request *rq, struct io *s)
{
	struct task_id owner;

	if (is_flush(rq))
		return wanted_flush(rq);
	if (known_wanted(s, rq->start_time_ns))
		return true;
	if (known_by_bio() && bio_slot_take(rq, &owner)) {
		own_request(rq, &owner);
		return true;
	}
	return wanted_by_cgroup(rq->bio);
}

inline_ int span_begin(struct request *rq, bool first_only)
{
	struct io *s;

	if (!keep_disk(rq))
		return 0;
	s = rq_slot(rq);
	if ((filter.on || owner_parts) && !wanted(rq, s) && filter.on)
		return filtered();
	if (!s)
		s = rq_slot_new(rq);
	if (!s)
		return 0;
	s->wanted = filter.on;
	if (!first_only || !s->start || s->life != rq->start_time_ns)
		s->start = bpf_ktime_get_ns();
	if (span_queues() || filter.on)
		s->life = rq->start_time_ns;
	return 0;
}

/* Start time of a request that is done completely; 0: it is not done, or its start was not seen. */
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

/* Records the owner of the request, in the submitter's context. */
TRACING(on_io_start, "tp_btf/block_io_start")
{
	struct request *rq = (struct request *)ctx[0];
	struct io *s = rq_slot(rq);
	struct task_id owner = {};

	/* Its last completion was not seen; a request that is only queued may have been merged. */
	if (s && s->wanted && s->start && !span_queues())
		count(LEDGER_UNMATCHED);
	if (on_wanted_disk(rq) && filter_matches(current_task())) {
		s = s ? s : rq_slot_new(rq);
		if (s)
			*s = (struct io){ .wanted = 1 };
		if (owner_parts) {
			identify_submitter(&owner, rq->bio);
			own_request(rq, &owner);
		}
		return 0;
	}
	if (s)
		s->wanted = 0; /* its last use was by another task, or on another disk */
	return 0;
}

/* The same before 6.5. */
TRACING(on_getrq, "tp_btf/block_getrq")
{
	struct task_id owner = {};
	u64 bio = getrq_bio(ctx);

	if (!filter_matches(current_task()))
		return 0;
	if (owner_parts)
		identify_submitter(&owner, (struct bio *)bio);
	bio_slot_put(bio, &owner);
	return 0;
}

#endif
