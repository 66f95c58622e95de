// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* iosched: time that block requests wait in the I/O scheduler. */
#include "lib/block/block_span.bpf.h"
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/core/program.bpf.h"
#include "block/iosched.h"

OPT(bool, by_disk);

HISTOGRAM(waits, struct iosched_key)

inline_ bool span_queues(void)
{
	return true;
}

/* Also for a request that the device refused and that is queued again: it waits once more. */
PROGRAM(on_insert, "tp_btf/block_rq_insert", span_begin(insert_rq(ctx), false))

TRACING(on_issue, "tp_btf/block_rq_issue")
{
	struct request *rq = issue_rq(ctx);
	struct iosched_key key = {};
	struct io *s = rq_slot(rq);
	u64 start;

	if (!s || !s->start)
		return 0;
	start = s->start;
	s->start = 0;
	if (s->life != rq->start_time_ns)
		return 0;
	if (rq->q->elevator)
		bpf_probe_read_kernel_str(key.scheduler, sizeof(key.scheduler),
					  rq->q->elevator->type->elevator_name);
	if (by_disk)
		key.disk = rq_disk(rq);
	waits_add_of(&key, since(start, bpf_ktime_get_ns()), owner_of_request(rq));
	forget_owner(rq);
	return 0;
}
