// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* biolatency: block I/O latency as a histogram. */
#include "lib/block.bpf.h"
#include "lib/hist.bpf.h"
#include "block/biolatency.h"

OPT(bool, queued);
OPT(bool, by_disk);
OPT(bool, by_flags);

/*
 * Requests come from fixed sets of tags: a slot is written anew for each I/O and never deleted, so
 * that there is no allocator work, and nothing leaks when a request ends in another way.
 */
struct io {
	u64 start; /* 0: not under way */
	u64 wanted;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct io);
} requests SEC(".maps");

/* Bios that a wanted task has submitted, until they are a request's. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u8);
} wanted_bios SEC(".maps");

HIST_KEYS(struct biolatency_key);

/* Set when all is attached: what began before is not missed. */
volatile __u64 tracing_since = 0;

inline_ void put(struct request *rq, struct io *fresh)
{
	u64 key = (u64)rq;

	if (bpf_map_update_elem(&requests, &key, fresh, BPF_ANY))
		count(LEDGER_UNTRACKED);
}

inline_ bool wanted_by_bio(struct request *rq)
{
	u64 bio = (u64)rq->bio;

	if (!bpf_map_lookup_elem(&wanted_bios, &bio))
		return false;
	bpf_map_delete_elem(&wanted_bios, &bio);
	return true;
}

inline_ int begin(struct request *rq, bool first_only)
{
	u64 key = (u64)rq;
	struct io fresh = {}, *s;

	if (!keep_disk(rq))
		return 0;
	s = bpf_map_lookup_elem(&requests, &key);
	if (filter.on && !(s && s->wanted) && !wanted_by_bio(rq) && !wanted_by_cgroup(rq)) {
		count(LEDGER_FILTERED);
		return 0;
	}
	if (!s) {
		fresh.start = bpf_ktime_get_ns();
		fresh.wanted = filter.on;
		put(rq, &fresh);
		return 0;
	}
	s->wanted = filter.on;
	if (!first_only || !s->start)
		s->start = bpf_ktime_get_ns();
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
	u64 id = (u64)rq, ns;
	struct io *s;

	if (!rq_done(rq, ctx[2]))
		return 0;
	s = bpf_map_lookup_elem(&requests, &id);
	if (!s || !s->start) {
		/* A flush has a request that is never issued; it carries no data. */
		if (!filter.on && !filter_disk_on && rq->__data_len && tracing_since &&
		    rq->start_time_ns > tracing_since)
			count(LEDGER_UNMATCHED);
		if (s)
			s->wanted = 0;
		return 0;
	}
	ns = since(s->start, bpf_ktime_get_ns());
	s->start = 0;
	s->wanted = 0;
	if (!hist_keyed) {
		hist_add(ns);
		return 0;
	}
	if (by_disk)
		key.disk = rq_disk(rq);
	if (by_flags)
		key.flags = rq->cmd_flags;
	hist_add_key(&key, ns);
	return 0;
}

/* With a filter by task: whose request it is, while the submitter runs. */
SEC("tp_btf/block_io_start")
int on_io_start(u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	struct io fresh = { .wanted = 1 };

	if (filter_matches(current_task()))
		put(rq, &fresh);
	return 0;
}

/* The same before 6.5 brought block_io_start (5a80bd075f3b): there is only the bio yet. */
TP_ARGS(block_getrq);

SEC("tp_btf/block_getrq")
int on_getrq(u64 *ctx)
{
	u64 bio = tp_args_block_getrq >= 2 ? ARG(ctx, 1) : ARG(ctx, 0);
	u8 one = 1;

	if (filter_matches(current_task()))
		bpf_map_update_elem(&wanted_bios, &bio, &one, BPF_ANY);
	return 0;
}
