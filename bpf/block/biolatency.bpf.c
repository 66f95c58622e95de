// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* biolatency: block I/O latency as a histogram. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/block/block_span.bpf.h"
#include "lib/core/program.bpf.h"
#include "block/biolatency.h"

OPT(bool, queued);
OPT(bool, by_disk);
OPT(bool, by_flags);

HISTOGRAM(latency, struct biolatency_key)

inline_ bool span_queues(void)
{
	return queued;
}

PROGRAM(on_insert, "tp_btf/block_rq_insert", span_begin(insert_rq(ctx), true))
PROGRAM(on_issue, "tp_btf/block_rq_issue", span_begin(issue_rq(ctx), queued))

TRACING(on_complete, "tp_btf/block_rq_complete")
{
	struct request *rq = (struct request *)ctx[0];
	struct biolatency_key key = {};
	u64 start = span_end(rq, ctx[2]);

	if (!start)
		return 0;
	if (by_disk)
		key.disk = rq_disk(rq);
	if (by_flags)
		key.flags = rq->cmd_flags;
	latency_add_of(&key, since(start, bpf_ktime_get_ns()), owner_of_request(rq));
	forget_owner(rq);
	return 0;
}
