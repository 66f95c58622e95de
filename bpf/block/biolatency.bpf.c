// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* biolatency: block I/O latency as a histogram. */
#include "lib/block.bpf.h"
#include "lib/aggregate.bpf.h"
#include "block/biolatency.h"

OPT(bool, queued);
OPT(bool, by_disk);
OPT(bool, by_flags);

struct io {
	u64 start;  /* 0: not under way */
	u64 wanted; /* by a filter; kept while it may wait for a flush */
	u64 life;   /* when the request began: one that was merged into another never ends */
};

RQ_SLOTS(struct io);

/* Of a wanted task; nothing more is known. */
BIO_SLOTS(u8);

HISTOGRAM(latency, struct biolatency_key)

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

inline_ int begin(struct request *rq, bool first_only)
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
	if (queued || filter.on)
		s->life = rq->start_time_ns;
	return 0;
}

SEC("tp_btf/block_rq_insert")
int on_insert(u64 *ctx)
{
	return begin(insert_rq(ctx), true);
}

SEC("tp_btf/block_rq_issue")
int on_issue(u64 *ctx)
{
	return begin(issue_rq(ctx), queued);
}

SEC("tp_btf/block_rq_complete")
int on_complete(u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	struct biolatency_key key = {};
	u64 ns;
	struct io *s;

	if (!rq_done(rq, ctx[2]))
		return 0;
	s = rq_slot(rq);
	if (!s || !s->start) {
		if (missed_start(rq, s && s->wanted))
			count(LEDGER_UNMATCHED);
		if (s)
			s->wanted = 0;
		return 0;
	}
	ns = since(s->start, bpf_ktime_get_ns());
	s->start = 0;
	s->wanted = filter.on && waits_for_flush(rq);
	if (by_disk)
		key.disk = rq_disk(rq);
	if (by_flags)
		key.flags = rq->cmd_flags;
	latency_add(&key, ns);
	return 0;
}

/* With a filter by task: whose request it is, while the submitter runs. */
SEC("tp_btf/block_io_start")
int on_io_start(u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	struct io *s = rq_slot(rq);

	/* Its last end was not seen; of those that only queue it could have been merged. */
	if (s && s->wanted && s->start && !queued)
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
