/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tracks each block request that passes the filters: its submitter, and when it was
 * inserted and issued. A tool with it has hooks for on_io_start or on_getrq, calls
 * io_inserted() and io_issued() at the tracepoints of these names, and io_completed()
 * and io_ended() at block_rq_complete. It defines io_has_end() and identify_owner().
 *
 * Contexts: interrupts and tasks, at block tracepoints, with preemption off; identify_owner() by
 * the submitter. Counts UNMATCHED.
 */
#ifndef CORETAP_BLOCK_IO_BPF_H
#define CORETAP_BLOCK_IO_BPF_H

#include "lib/block/block.bpf.h"

/* The submitter of a request. */
struct block_owner {
	struct task_id who;
	u64 kernel_stack; /* if the tool needs stacks: keys in `stacks`; 0: none */
	u64 user_stack;
};

/* A constant: does the tool see completions? */
inline_ bool io_has_end(void);

/* Sets what the tool needs of the submitter, in its context: identify_submitter() and stacks. */
inline_ void identify_owner(void *ctx, struct block_owner *owner, struct bio *bio);

struct block_io {
	u64 inserted; /* 0: not yet */
	u64 issued;   /* 0: not yet */
	u64 sector;
	u32 bytes;
	u32 tag;    /* for the tool's use */
	u64 wanted; /* its submission was seen and passed the filters */
	u64 began;  /* start_time_ns of the request: distinguishes reuse of the request */
	struct block_owner owner;
};

inline_ bool rq_idle(struct block_io *s)
{
	return !s->wanted || (!io_has_end() && s->issued);
}

RQ_SLOTS(struct block_io);
BIO_SLOTS(struct block_owner);

/* For identify_owner(), if rows are by command name. */
inline_ void identify_comm(struct block_owner *owner, struct bio *bio)
{
	if (owner_parts) {
		identify_submitter(&owner->who, bio);
	} else {
		owner->who.known = 1;
		current_comm(owner->who.comm);
	}
}

/* In the submitter's context: only here the owner of the I/O is known. */
TRACING(on_io_start, "tp_btf/block_io_start")
{
	struct request *rq = (struct request *)ctx[0];
	struct block_io *s = rq_slot(rq);

	if (io_has_end() && s && s->wanted && end_missed(s->issued))
		count(LEDGER_UNMATCHED);
	if (!keep_disk(rq) || !keep_submission(rq->bio)) {
		if (s)
			s->wanted = s->issued = s->owner.who.known = 0;
		return 0;
	}
	if (!s)
		s = rq_slot_new(rq);
	if (!s)
		return 0;
	s->inserted = s->issued = 0;
	s->wanted = 1;
	identify_owner(ctx, &s->owner, rq->bio);
	return 0;
}

/* The same before 6.5. */
TRACING(on_getrq, "tp_btf/block_getrq")
{
	u64 bio = getrq_bio(ctx);
	struct block_owner o = {};

	if (!keep_submission((struct bio *)bio))
		return 0;
	identify_owner(ctx, &o, (struct bio *)bio);
	bio_slot_put(bio, &o);
	return 0;
}

/*
 * A flush of the device serves requests that wait for it; the first of them is taken as its
 * submitter. It may still have its bio, or be written already and wait for the flush that follows.
 */
inline_ bool find_flusher(struct request *flush, struct block_owner *owner)
{
	struct request *waits = first_waiting(flush);
	struct block_io *s = rq_slot_read((u64)waits);
	u64 bio = (u64)BPF_CORE_READ(waits, bio);
	struct block_owner *by_bio;

	if (known_by_bio()) {
		by_bio = bpf_map_lookup_elem(&bios, &bio);
		if (by_bio) {
			*owner = *by_bio;
			return true;
		}
	}
	if (!s || !s->owner.who.known)
		return false;
	*owner = s->owner;
	return true;
}

inline_ bool find_owner(struct request *rq, struct block_owner *owner)
{
	if (is_flush(rq))
		return find_flusher(rq, owner);
	return known_by_bio() && bio_slot_take(rq, owner);
}

/* At insertion or issue, whichever is first, of a request that is not known to be wanted yet. */
inline_ struct block_io *claim(struct request *rq)
{
	struct block_owner owner = {};
	struct block_io *s;

	if (!find_owner(rq, &owner)) {
		/* The submission of most requests that the filters exclude was seen and counted. */
		if (filter.on)
			return NULL;
		if (!known_by_bio() && !is_flush(rq) && !on_wanted_disk(rq))
			return NULL;
	}
	if ((known_by_bio() || is_flush(rq)) && !keep_disk(rq))
		return NULL;
	s = rq_slot_make(rq);
	if (!s)
		return NULL;
	s->inserted = s->issued = 0;
	s->wanted = 1;
	s->began = rq->start_time_ns;
	s->owner = owner;
	return s;
}

inline_ struct block_io *wanted_io(struct request *rq)
{
	struct block_io *s = rq_slot(rq);

	/* A request merged into another never ends: possible if no start was seen.
	 */
	if (s && s->wanted && (!known_by_bio() || s->began == rq->start_time_ns))
		return s;
	return claim(rq);
}

inline_ int io_inserted(struct request *rq)
{
	struct block_io *s = wanted_io(rq);

	if (s && !s->inserted)
		s->inserted = bpf_ktime_get_ns();
	return 0;
}

/* NULL: not wanted. *first: not issued before. If reissued, the request lacks the parts done.
 */
inline_ struct block_io *io_issued(struct request *rq, u32 tag, bool *first)
{
	u64 sector = rq->__sector;
	u32 bytes = rq->__data_len;
	struct block_io *s = wanted_io(rq);

	if (!s)
		return NULL;
	*first = !s->issued;
	if (*first) {
		s->sector = sector;
		s->bytes = bytes;
		s->tag = tag;
	}
	s->issued = io_has_end() ? bpf_ktime_get_ns() : 1;
	return s;
}

/* For programs that only need the time. */
inline_ int io_issue(struct request *rq)
{
	bool first;

	io_issued(rq, 0, &first);
	return 0;
}

/* The slot of a completely done request; NULL: not done yet, or its start was not seen. */
inline_ struct block_io *io_completed(struct request *rq, u32 bytes)
{
	struct block_io *s;

	if (!rq_done(rq, bytes))
		return NULL;
	s = rq_slot(rq);
	if (s && s->issued && s->wanted)
		return s;
	if (missed_start(rq, s && s->wanted))
		count(LEDGER_UNMATCHED);
	if (s) {
		s->owner.who.known = 0;
		s->inserted = s->issued = s->wanted = 0;
	}
	return NULL;
}

/* After the last use of the slot's data. After written
 * data a flush may follow, with the same submitter. */
inline_ void io_ended(struct request *rq, struct block_io *s)
{
	if (!waits_for_flush(rq))
		s->owner.who.known = 0;
	s->inserted = s->issued = s->wanted = 0;
}

#endif
