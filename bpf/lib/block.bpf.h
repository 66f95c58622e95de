/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Block requests: what differs between kernels, and whose they are. */
#ifndef CORETAP_BLOCK_BPF_H
#define CORETAP_BLOCK_BPF_H

#include "lib/filter.bpf.h"

OPT(bool, filter_disk_on);
OPT(__u32, filter_disk); /* major << 20 | minor */

/* 5.11 dropped the queue from these tracepoints (a54895fa057c); stable kernels took that over. */
TP_ARGS(block_rq_insert);
TP_ARGS(block_rq_issue);

inline_ struct request *second_or_first(u64 *ctx, u32 args)
{
	return (struct request *)(args == 2 ? ARG(ctx, 1) : ARG(ctx, 0));
}
#define insert_rq(ctx) second_or_first(ctx, tp_args_block_rq_insert)
#define issue_rq(ctx) second_or_first(ctx, tp_args_block_rq_issue)

/* 5.17 moved the disk from the request to its queue (f3fa33acca9f). */
struct request___with_disk {
	struct gendisk *rq_disk;
} __attribute__((preserve_access_index));

/* 0: a passthrough request without a disk */
inline_ u32 rq_disk(struct request *rq)
{
	struct request___with_disk *old = (void *)rq;
	struct gendisk *disk;

	if (bpf_core_field_exists(old->rq_disk))
		disk = old->rq_disk;
	else
		disk = rq->q->disk;
	return disk ? (u32)disk->major << 20 | disk->first_minor : 0;
}

inline_ bool keep_disk(struct request *rq)
{
	if (!filter_disk_on || rq_disk(rq) == filter_disk)
		return true;
	count(LEDGER_FILTERED);
	return false;
}

/*
 * block_rq_complete fires for each part that completes, before the request's length shrinks:
 * the last part is at least as long as what is left.
 */
inline_ bool rq_done(struct request *rq, u32 bytes)
{
	return bytes >= rq->__data_len;
}

/* The cgroup that the I/O is charged to lies in the wanted one: right for writeback too. */
inline_ bool wanted_by_cgroup(struct request *rq)
{
	struct cgroup *c;

	if (!filter.by_cgroup)
		return false;
	c = BPF_CORE_READ(rq, bio, bi_blkg, blkcg, css.cgroup);

	/* Hierarchy 0 is version 2; elsewhere ids mean other directories. */
	return c && BPF_CORE_READ(c, root, hierarchy_id) == 0 && cgroup_under(c, filter.cgroup);
}

#endif
