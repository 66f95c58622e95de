// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* biolatpcts: percentiles of block I/O latency. */
#include "lib/block/block_span.bpf.h"
#include "lib/aggregate/percentile.bpf.h"
#include "block/biolatpcts.h"

OPT(__u32, measured_since);

#define REQ_OP_WRITE 1

PERCENTILES(latencies, struct biolatpcts_key)

inline_ bool span_queues(void)
{
	return false;
}

TRACING(on_issue, "tp_btf/block_rq_issue")
{
	if (measured_since == BIOLATPCTS_ISSUE || filter.on)
		span_begin(issue_rq(ctx), false);
	return 0;
}

/* The kernel's timestamp; 0: none. Not all kernels have CONFIG_BLK_RQ_ALLOC_TIME. */
inline_ u64 stamp(struct request *rq)
{
	if (measured_since == BIOLATPCTS_ALLOCATED)
		return rq->start_time_ns;
	return bpf_core_field_exists(rq->alloc_time_ns) ? rq->alloc_time_ns : 0;
}

/* Start time of a completed request; 0: not completed, not wanted, or unknown. */
inline_ u64 start_of(struct request *rq, u32 bytes)
{
	u64 start;

	if (measured_since == BIOLATPCTS_ISSUE || filter.on) {
		start = span_end(rq, bytes);
		if (!start || measured_since == BIOLATPCTS_ISSUE)
			return start;
	} else if (!rq_done(rq, bytes) || !keep_disk(rq)) {
		return 0;
	}
	/* A write without data only waits for a flush, which is a separate request. */
	if (!rq->__data_len && (rq->cmd_flags & 0xff) == REQ_OP_WRITE)
		return 0;
	start = stamp(rq);
	if (!start)
		count(LEDGER_UNMATCHED);
	return start;
}

TRACING(on_complete, "tp_btf/block_rq_complete")
{
	struct request *rq = (struct request *)ctx[0];
	struct biolatpcts_key key = {};
	u64 start = start_of(rq, ctx[2]);

	if (!start)
		return 0;
	key.disk = rq_disk(rq);
	key.operation = rq->cmd_flags & 0xff;
	latencies_add(&key, since(start, bpf_ktime_get_ns()));
	return 0;
}
