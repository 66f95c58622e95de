// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* biosnoop: each block I/O with who submitted it and how long it took. */
#include "lib/block.bpf.h"
#include "lib/emit.bpf.h"
#include "block/biosnoop.h"

OPT(bool, queued);
OPT(bool, with_pattern);
OPT(__u64, min_ns);

struct io {
	u64 inserted; /* 0: not yet */
	u64 issued;   /* 0: not yet */
	u64 sector;
	u32 bytes;
	u32 pattern;
	u64 wanted; /* its submission was seen, and not filtered */
	u64 began;  /* the kernel's own stamp of the request, which tells its lives apart */
	struct biosnoop_owner owner;
};

static const struct io io_zero;

RQ_SLOTS(struct io);
BIO_SLOTS(struct biosnoop_owner);

/* Where the previous I/O on a disk ended. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} next_sectors SEC(".maps");

/* Set when all is attached: what began before is not missed. */
volatile __u64 tracing_since = 0;

inline_ struct io *rq_slot_make(struct request *rq)
{
	struct io *s = rq_slot(rq);

	if (!s) {
		rq_slot_put(rq, (struct io *)&io_zero);
		s = rq_slot(rq);
	}
	return s;
}

inline_ void fill_owner(struct biosnoop_owner *o)
{
	o->cgroup = bpf_get_current_cgroup_id();
	o->pid = current_tgid();
	o->tid = current_tid();
	o->uid = (u32)bpf_get_current_uid_gid();
	o->known = 1;
	bpf_get_current_comm(o->comm, sizeof(o->comm));
}

/* In the submitter's context: only here is it known whose the I/O is. */
SEC("tp_btf/block_io_start")
int on_io_start(u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	struct io *s = rq_slot(rq);

	if (s && s->wanted && s->issued) /* its last end was not seen */
		count(LEDGER_UNMATCHED);
	if (!keep_disk(rq) || !keep_submission(rq->bio)) {
		if (s)
			s->wanted = s->issued = s->owner.known = 0;
		return 0;
	}
	s = rq_slot_make(rq);
	if (!s)
		return 0;
	s->inserted = s->issued = 0;
	s->wanted = 1;
	fill_owner(&s->owner);
	return 0;
}

/* The same before 6.5. */
SEC("tp_btf/block_getrq")
int on_getrq(u64 *ctx)
{
	u64 bio = getrq_bio(ctx);
	struct biosnoop_owner o = {};

	if (!keep_submission((struct bio *)bio))
		return 0;
	fill_owner(&o);
	bio_slot_put(bio, &o);
	return 0;
}

/*
 * A flush of the device serves requests that wait for it, the first of which is taken for its
 * submitter: it may still have its bio, or be written already and wait for the flush behind it.
 */
inline_ bool find_flusher(struct request *flush, struct biosnoop_owner *owner)
{
	struct request *waits = first_waiting(flush);
	struct io *s = rq_slot(waits);
	u64 bio = (u64)BPF_CORE_READ(waits, bio);
	struct biosnoop_owner *by_bio;

	if (known_by_bio()) {
		by_bio = bpf_map_lookup_elem(&bios, &bio);
		if (by_bio) {
			*owner = *by_bio;
			return true;
		}
	}
	if (!s || !s->owner.known)
		return false;
	*owner = s->owner;
	return true;
}

inline_ bool find_owner(struct request *rq, struct biosnoop_owner *owner)
{
	if (is_flush(rq))
		return find_flusher(rq, owner);
	return known_by_bio() && bio_slot_take(rq, owner);
}

/* At the first of insertion and issue of a request that is not known to be wanted yet. */
inline_ struct io *claim(struct request *rq)
{
	struct biosnoop_owner owner = {};
	struct io *s;

	if (!find_owner(rq, &owner)) {
		/* Of most that the filters do not want the submission was seen and counted. */
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

inline_ struct io *wanted_slot(struct request *rq)
{
	struct io *s = rq_slot(rq);

	/* A request that was merged into another never ends: where no start was seen, it may be so.
	 */
	if (s && s->wanted && (!known_by_bio() || s->began == rq->start_time_ns))
		return s;
	return claim(rq);
}

/* Only with --queued. */
SEC("tp_btf/block_rq_insert")
int on_insert(u64 *ctx)
{
	struct io *s = wanted_slot(insert_rq(ctx));

	if (s && !s->inserted)
		s->inserted = bpf_ktime_get_ns();
	return 0;
}

inline_ u32 pattern_of(struct request *rq, u64 sector, u32 bytes)
{
	u64 next = sector + (bytes >> 9), expected;
	u32 disk = rq_disk(rq);
	u64 *known = bpf_map_lookup_elem(&next_sectors, &disk);

	if (!known) {
		if (bpf_map_update_elem(&next_sectors, &disk, &next, BPF_ANY))
			count(LEDGER_UNTRACKED);
		return BIOSNOOP_NO_PATTERN;
	}
	expected = *known;
	*known = next;
	return sector == expected ? BIOSNOOP_SEQUENTIAL : BIOSNOOP_RANDOM;
}

SEC("tp_btf/block_rq_issue")
int on_issue(u64 *ctx)
{
	struct request *rq = issue_rq(ctx);
	u64 sector = rq->__sector;
	u32 bytes = rq->__data_len, pattern = BIOSNOOP_NO_PATTERN;
	struct io *s;

	/* What the filters do not want moves the disk's head too. */
	if (with_pattern && bytes)
		pattern = pattern_of(rq, sector, bytes);
	s = wanted_slot(rq);
	if (!s)
		return 0;
	/* Issued again, what is done of it already is gone from the request. */
	if (!s->issued) {
		s->sector = sector;
		s->bytes = bytes;
		s->pattern = pattern;
	}
	s->issued = bpf_ktime_get_ns();
	return 0;
}

inline_ void show(struct request *rq, struct io *s, u64 now, s32 status)
{
	u64 latency = since(s->issued, now);
	struct biosnoop_event *e;

	if (latency < min_ns) {
		count(LEDGER_FILTERED);
		return;
	}
	e = emit_begin(sizeof(*e));
	if (!e)
		return;
	e->head.time_ns = now;
	e->latency_ns = latency;
	e->sector = s->sector;
	e->bytes = s->bytes;
	e->pattern = s->pattern;
	e->disk = rq_disk(rq);
	e->flags = rq->cmd_flags;
	e->status = status;
	e->owner = s->owner;
	if (queued) {
		/* Without a scheduler there may be no queue to be in. */
		e->queued_ns = s->inserted ? since(s->inserted, s->issued) : 0;
		e->queue_known = 1;
	}
	emit_end(e);
}

SEC("tp_btf/block_rq_complete")
int on_complete(u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	struct io *s;

	if (!rq_done(rq, ctx[2]))
		return 0;
	s = rq_slot(rq);
	if (s && s->issued && s->wanted) {
		show(rq, s, bpf_ktime_get_ns(), (s32)ctx[1]);
		/* Its data is written: a flush may follow, which is still the submitter's. */
		if (!waits_for_flush(rq))
			s->owner.known = 0;
	} else {
		/* A flush has a request that is never issued; it carries no data. */
		if (rq->__data_len &&
		    ((s && s->wanted) || (!filter.on && !filter_disk_on && tracing_since &&
					  rq->start_time_ns > tracing_since)))
			count(LEDGER_UNMATCHED);
		if (s)
			s->owner.known = 0;
	}
	if (s)
		s->inserted = s->issued = s->wanted = 0;
	return 0;
}
