// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bioerr: failed block I/O. */
#include "lib/block/block.bpf.h"
#include "lib/core/emit.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/stack/cpu_walk.bpf.h"
#include "lib/stack/stack.bpf.h"
#include "block/bioerr.h"

RECORD(bioerr_event);

OPT(bool, all);

#define BLK_STS_NOTSUPP 1
#define RQF_QUIET (1 << 11)    /* before 5.18, which uses on_error */
#define REQ_OP_PASSTHROUGH 32U /* and above */

struct submission {
	u64 began; /* start_time_ns of the request: distinguishes reuse of the request */
	u32 seen;  /* jiffies, when it was submitted or issued */
	u32 wanted;
	u64 stack; /* key in `stacks`; 0: none */
	struct task_id who;
};

/*
 * Completions are not tracked; the block layer times out commands
 * after half a minute. This is two minutes at 1,000 Hz, twenty at 100.
 */
inline_ bool rq_idle(struct submission *s)
{
	return (u32)bpf_jiffies64() - s->seen > 120 * 1000;
}

RQ_SLOTS(struct submission);
BIO_SLOTS(struct submission);

/* Also recorded for filtered submissions: only failures matter, and are counted then. */
inline_ void submitted(void *ctx, struct submission *s, struct bio *bio)
{
	s->seen = bpf_jiffies64();
	s->wanted = wanted_submission(bio);
	identify_current(&s->who);
	s->stack = stack_on && s->wanted ? stack_of_kernel(ctx, 0) : 0;
}

TRACING(on_io_start, "tp_btf/block_io_start")
{
	struct request *rq = (struct request *)ctx[0];
	struct submission *s;

	if (!on_wanted_disk(rq))
		return 0;
	s = rq_slot_make(rq);
	if (s)
		submitted(ctx, s, rq->bio);
	return 0;
}

/* The same before 6.5. */
TRACING(on_getrq, "tp_btf/block_getrq")
{
	u64 bio = getrq_bio(ctx);
	struct submission s = {};

	submitted(ctx, &s, (struct bio *)bio);
	bio_slot_put(bio, &s);
	return 0;
}

TRACING(on_issue, "tp_btf/block_rq_issue")
{
	struct request *rq = issue_rq(ctx);
	struct submission *s;

	if (!on_wanted_disk(rq))
		return 0;
	s = rq_slot_make(rq);
	if (!s || (s->began && s->began == rq->start_time_ns)) /* reissued */
		return 0;
	if (!bio_slot_take(rq, s)) {
		s->who.known = s->wanted = s->stack = 0;
		s->seen = bpf_jiffies64();
	}
	s->began = rq->start_time_ns;
	return 0;
}

/* Skips read-ahead, which no task waits for, and operations not supported by the device. */
inline_ bool of_interest(u32 flags, s32 status)
{
	if (all || (!(flags & 1U << __REQ_RAHEAD) && status != BLK_STS_NOTSUPP &&
		    status != -95 /* EOPNOTSUPP */))
		return true;
	return filtered();
}

/* The completion's stack is unrelated: the record is followed by the submitter's. */
inline_ void add_stack(struct stack *to, struct submission *s)
{
	u64 id = s ? s->stack : 0;
	struct stack *kept = id ? bpf_map_lookup_elem(&stacks, &id) : NULL;

	/* From address NULL the helper reads zeros: a stack without frames. */
	bpf_probe_read_kernel(to, sizeof(*to), kept);
	if (!kept && s && s->who.known)
		count(LEDGER_STACK_FAILED);
}

inline_ int show(struct bioerr_event *from, struct submission *s)
{
	struct bioerr_event *e;

	e = emit_begin_stack(sizeof(*e));
	if (!e)
		return 0;
	*e = *from;
	e->head.time_ns = bpf_ktime_get_ns();
	if (s && s->who.known)
		e->owner = s->who;
	if (stack_on)
		add_stack((struct stack *)(e + 1), s);
	return emit_end(e);
}

inline_ int failed(struct request *rq, s32 status, u32 bytes)
{
	struct bioerr_event e = { .sector = rq->__sector,
				  .bytes = bytes,
				  .disk = rq_disk(rq),
				  .flags = rq->cmd_flags,
				  .status = status };
	struct submission *s;

	if (!keep_disk(rq) || !of_interest(e.flags, status))
		return 0;
	s = rq_slot(rq);
	if (filter.on && (!s || !s->wanted))
		count(LEDGER_FILTERED);
	else
		show(&e, s);
	return 0;
}

PROGRAM(on_error, "tp_btf/block_rq_error", failed((struct request *)ctx[0], ctx[1], ctx[2]))

/* Before 5.18, or if errors are wanted that the kernel does not log either. */
TRACING(on_complete, "tp_btf/block_rq_complete")
{
	struct request *rq = (struct request *)ctx[0];
	s32 status = ctx[1];

	/* Requests waiting for the kernel's flush request fail with it, and are shown. */
	if (!status || !rq->bio)
		return 0;
	if (!all && (rq->rq_flags & RQF_QUIET || (rq->cmd_flags & 0xff) >= REQ_OP_PASSTHROUGH))
		return filtered();
	return failed(rq, status, ctx[2]);
}

/* For a device without requests, such as device mapper and md. */
TRACING(on_bio, "tp_btf/block_bio_complete")
{
	struct bio *bio = (struct bio *)ctx[1];
	struct bioerr_event e = { .status = bio->bi_status };

	if (!e.status)
		return 0;
	e.disk = disk_number(bio_disk(bio));
	e.flags = bio->bi_opf;
	e.sector = bio->bi_iter.bi_sector;
	e.bytes = bio->bi_iter.bi_size;
	if (!of_interest(e.flags, e.status))
		return 0;
	if (!bio_on_wanted_disk(bio) || (filter.on && !wanted_by_cgroup(bio)))
		count(LEDGER_FILTERED);
	else
		show(&e, NULL);
	return 0;
}
