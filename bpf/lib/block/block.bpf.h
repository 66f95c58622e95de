/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Block requests: differences between kernels, and owners.
 *
 * Contexts: interrupts and tasks, at block tracepoints, with preemption off. Counts FILTERED,
 * UNTRACKED.
 */
#ifndef CORETAP_BLOCK_BPF_H
#define CORETAP_BLOCK_BPF_H

#include "lib/aggregate/aggregate.bpf.h"
#include "lib/block/bio.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/core/since.bpf.h"

/* 5.11 dropped the queue from these tracepoints (a54895fa057c); stable kernels backported that. */
TP_ARGS(block_rq_insert);
TP_ARGS(block_rq_issue);

inline_ struct request *second_or_first(u64 *ctx, u32 args)
{
	return (struct request *)(args == 2 ? ARG(ctx, 1) : ARG(ctx, 0));
}

inline_ struct request *insert_rq(u64 *ctx)
{
	return second_or_first(ctx, tp_args_block_rq_insert);
}

inline_ struct request *issue_rq(u64 *ctx)
{
	return second_or_first(ctx, tp_args_block_rq_issue);
}

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

inline_ bool on_wanted_disk(struct request *rq)
{
	return !filter_disk_on || wanted_disk(rq_disk(rq));
}

inline_ bool keep_disk(struct request *rq)
{
	if (on_wanted_disk(rq))
		return true;
	return filtered();
}

/*
 * block_rq_complete fires for each part that completes, before the
 * request's length shrinks: the last part is at least as long as the rest.
 */
inline_ bool rq_done(struct request *rq, u32 bytes)
{
	return bytes >= rq->__data_len;
}

/*
 * Was the start of a completing request missed? A flush
 * has a request that is never issued; it carries no data.
 */
inline_ bool missed_start(struct request *rq, bool wanted)
{
	u64 start_ns = rq->start_time_ns;

	if (!rq->__data_len || tracing_stopped)
		return false;
	if (wanted)
		return !start_ns || began_traced(start_ns);
	return !filter.on && !filter_disk_on && began_traced(start_ns);
}

/* The cgroup that the I/O is charged to; writeback takes it from the pages. NULL: not in version 2.
 */
inline_ struct cgroup *charged_cgroup(struct bio *bio)
{
	struct cgroup *c = BPF_CORE_READ(bio, bi_blkg, blkcg, css.cgroup);

	/* Hierarchy 0 is version 2; in others ids mean other directories. */
	return c && BPF_CORE_READ(c, root, hierarchy_id) == 0 ? c : NULL;
}

inline_ bool wanted_by_cgroup(struct bio *bio)
{
	struct cgroup *c;

	if (!filter.by_cgroup)
		return false;
	c = charged_cgroup(bio);
	return c && cgroup_under(c, filter.cgroup);
}

/* The running task submits this bio. I/O by a kernel thread for a cgroup belongs to the cgroup. */
inline_ void identify_submitter(struct task_id *id, struct bio *bio)
{
	struct cgroup *c;

	identify_current(id);
	if (!(owner_parts & OWNER_CGROUP) || !(BPF_CORE_READ(current_task(), flags) & PF_KTHREAD))
		return;
	c = charged_cgroup(bio);
	if (c)
		id->cgroup = BPF_CORE_READ(c, kn, id);
}

/* Called at submission, about the submitter; later writeback belongs to its cgroup. */
inline_ bool wanted_submission(struct bio *bio)
{
	if (!filter.on || filter_matches(current_task()))
		return true;
	return !filter.by_tgid && !filter.by_tid && !filter.by_uid && !filter.by_comm &&
	       !filter.by_name && wanted_by_cgroup(bio);
}

inline_ bool keep_submission(struct bio *bio)
{
	if (wanted_submission(bio))
		return true;
	return filtered();
}

/*
 * A request for a flush, or for one before or after its data, waits until the kernel issues
 * a single flush request for all waiting ones; the sector of that request is meaningless.
 */
inline_ bool is_flush(struct request *rq)
{
	return (rq->cmd_flags & 0xff) == REQ_OP_FLUSH;
}

/*
 * Waits for a flush now, before, or later. The request's own flags lack what the device does
 * not do itself, so the bio is read; by a helper, as a flush has no bio: before 6.4
 * (0108a4e9f358) the kernel may panic where a program with subprograms follows such a pointer.
 */
inline_ bool waits_for_flush(struct request *rq)
{
	return BPF_CORE_READ(rq, bio, bi_opf) & (1U << __REQ_PREFLUSH | 1U << __REQ_FUA);
}

/* 6.6 links waiting requests by their member queuelist (81ada09cc25e). */
struct request___with_flush_list {
	struct {
		struct list_head list;
	} flush;
} __attribute__((preserve_access_index));

/* The first request that waits for this flush; read the address by bpf_core_read only. */
inline_ struct request *first_waiting(struct request *flush)
{
	struct request___with_flush_list *old = (void *)flush;
	struct blk_flush_queue *fq = BPF_CORE_READ(flush, mq_hctx, fq);
	u64 first;

	if (BPF_CORE_READ_BITFIELD_PROBED(fq, flush_running_idx))
		first = (u64)BPF_CORE_READ(fq, flush_queue[1].next);
	else
		first = (u64)BPF_CORE_READ(fq, flush_queue[0].next);
	if (bpf_core_field_exists(old->flush.list))
		return (void *)(first - bpf_core_field_offset(old->flush.list));
	return (void *)(first - bpf_core_field_offset(struct request, queuelist));
}

/*
 * Requests come from fixed sets of tags: a slot is rewritten for each I/O and not freed at its
 * end, so that there is no allocator work, and nothing leaks when a request ends in another
 * way. The table is an array with open addressing: mostly the first entry probed is the
 * request's, in one cache line, where a hash map would read two. Removed disks leave entries
 * behind: if no entry is free, a request takes over one that is not in flight, as rq_idle()
 * reports of its slot. If that other request starts at the same moment, its end is not matched.
 * With an LRU hash by request in its place, biolatency takes 437 ns per issue instead of 294,
 * and 455 per completion instead of 337 (run_time_ns/run_cnt, 6.18).
 */
OPT(__u32, requests_mask); /* entries of the table - 1; their number is a power of two */

#define RQ_PLACES 16 /* probed for a request: at least half of the table is free */

/* Two CPUs may claim the same place for different requests: only one gets it. */
MAP(HASH, request_claims, 1024, u32, u8);

/*
 * A request's place is computed from its address. The verifier does not allow arithmetic on a
 * pointer as a number, but the difference of two is a number, as is the value of a variable.
 */
__u64 requests_anchor;

inline_ u64 rq_offset(struct request *rq)
{
	u64 at = (u64)rq;

	asm volatile("%0 -= %1" : "+r"(at) : "r"(&requests_mask));
	return at;
}

/* For a request whose address the program has read. */
inline_ u64 rq_offset_read(u64 rq)
{
	*(volatile u64 *)&requests_anchor = (u64)&requests_mask;
	return rq - *(volatile u64 *)&requests_anchor;
}

inline_ u32 rq_place(u64 offset, u32 n)
{
	return ((u32)((offset >> 6) * 0x9e3779b97f4a7c15ULL >> 32) + n) & requests_mask;
}

#define RQ_SLOTS(slot_type)                                                                  \
	struct rq_entry {                                                                    \
		u64 rq; /* 0: the place is free; once used, it never is again */             \
		slot_type slot;                                                              \
	};                                                                                   \
	MAP(ARRAY, requests, 1, u32, struct rq_entry);                                       \
	inline_ struct rq_entry *rq_entry_at(u32 place)                                      \
	{                                                                                    \
		return bpf_map_lookup_elem(&requests, &place);                               \
	}                                                                                    \
	static __noinline slot_type *rq_slot_further(u64 rq, u64 offset)                     \
	{                                                                                    \
		for (u32 n = 1; n < RQ_PLACES; n++) {                                        \
			struct rq_entry *e = rq_entry_at(rq_place(offset, n));               \
                                                                                             \
			if (!e || !e->rq)                                                    \
				return NULL;                                                 \
			if (e->rq == rq)                                                     \
				return &e->slot;                                             \
		}                                                                            \
		return NULL;                                                                 \
	}                                                                                    \
	inline_ slot_type *rq_slot_find(u64 rq, u64 offset)                                  \
	{                                                                                    \
		struct rq_entry *e = rq_entry_at(rq_place(offset, 0));                       \
                                                                                             \
		if (!e || !e->rq)                                                            \
			return NULL;                                                         \
		return e->rq == rq ? &e->slot : rq_slot_further(rq, offset);                 \
	}                                                                                    \
	inline_ slot_type *rq_slot(struct request *rq)                                       \
	{                                                                                    \
		return rq_slot_find((u64)rq, rq_offset(rq));                                 \
	}                                                                                    \
	inline_ slot_type *rq_slot_read(u64 rq)                                              \
	{                                                                                    \
		return rq_slot_find(rq, rq_offset_read(rq));                                 \
	}                                                                                    \
	/* For a request without a slot. */                                                  \
	static __noinline slot_type *rq_slot_take(u64 rq, u64 offset)                        \
	{                                                                                    \
		for (u32 n = 0; n < 2 * RQ_PLACES; n++) {                                    \
			u32 place = rq_place(offset, n % RQ_PLACES);                         \
			struct rq_entry *e = rq_entry_at(place);                             \
			bool over = n >= RQ_PLACES, got = false;                             \
			u8 one = 1;                                                          \
                                                                                             \
			if (!e)                                                              \
				break;                                                       \
			if (e->rq && !(over && rq_idle(&e->slot)))                           \
				continue;                                                    \
			if (bpf_map_update_elem(&request_claims, &place, &one, BPF_NOEXIST)) \
				continue;                                                    \
			if (!*(volatile u64 *)&e->rq || (over && rq_idle(&e->slot))) {       \
				*(volatile u64 *)&e->rq = rq;                                \
				__builtin_memset(&e->slot, 0, sizeof(e->slot));              \
				got = true;                                                  \
			}                                                                    \
			bpf_map_delete_elem(&request_claims, &place);                        \
			if (got)                                                             \
				return &e->slot;                                             \
		}                                                                            \
		count(LEDGER_UNTRACKED);                                                     \
		return NULL;                                                                 \
	}                                                                                    \
	inline_ slot_type *rq_slot_new(struct request *rq)                                   \
	{                                                                                    \
		return rq_slot_take((u64)rq, rq_offset(rq));                                 \
	}                                                                                    \
	/* NULL: there is no room; counted. */                                               \
	inline_ slot_type *rq_slot_make(struct request *rq)                                  \
	{                                                                                    \
		slot_type *s = rq_slot(rq);                                                  \
                                                                                             \
		return s ? s : rq_slot_new(rq);                                              \
	}

/*
 * block_io_start runs in the submitter's context. Before 6.5 added it (5a80bd075f3b) there
 * is only block_getrq, where just the bio is known: the data is kept here by bio until the
 * bio is part of a request. A bio that is merged into another request reaches neither.
 */
TP_ARGS(block_io_start);
TP_ARGS(block_getrq);

inline_ bool known_by_bio(void)
{
	return tp_args_block_io_start == 0;
}

inline_ u64 getrq_bio(u64 *ctx)
{
	return tp_args_block_getrq >= 2 ? ARG(ctx, 1) : ARG(ctx, 0);
}

#define BIO_SLOTS(slot_type)                                            \
	MAP(LRU_HASH, bios, 1, u64, slot_type);                         \
	inline_ void bio_slot_put(u64 bio, slot_type *fresh)            \
	{                                                               \
		map_put(&bios, &bio, fresh);                            \
	}                                                               \
	/* Moves the data to `slot`. Front merges move the request's */ \
	/* own bio to the end. */                                       \
	inline_ bool bio_slot_take(struct request *rq, slot_type *slot) \
	{                                                               \
		u64 bio = (u64)rq->bio, last = (u64)rq->biotail;        \
		slot_type *s = bpf_map_lookup_elem(&bios, &bio);        \
                                                                        \
		if (!s && last != bio) {                                \
			bio = last;                                     \
			s = bpf_map_lookup_elem(&bios, &bio);           \
		}                                                       \
		if (!s)                                                 \
			return false;                                   \
		*slot = *s;                                             \
		bpf_map_delete_elem(&bios, &bio);                       \
		return true;                                            \
	}

#endif
