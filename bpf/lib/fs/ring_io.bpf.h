/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads, writes and flushes of files through io_uring, when their completion is posted: by
 * the submitting task, or by a worker or polling thread of its process. A tool with it has a
 * hook of include/coretap/ring_io.hpp, and defines ring_timed(). Not seen: requests without a
 * completion (IOSQE_CQE_SKIP_SUCCESS; since 6.5 those for which the ring is full), and multishot
 * reads.
 *
 * Contexts: tasks and interrupts, where completions are posted. Counts UNMATCHED, UNTRACKED.
 */
#ifndef CORETAP_RING_IO_BPF_H
#define CORETAP_RING_IO_BPF_H

#include "lib/core/filter.bpf.h"
#include "lib/core/follow.bpf.h"
#include "lib/core/program.bpf.h"

FOLLOWED(io_kiocb);
FOLLOWED(io_uring_cqe);
FOLLOWED(kiocb);

/* A constant: does the tool need submission times and file offsets? (timed_ring_io.bpf.h) */
inline_ bool ring_timed(void);

/* linux/io_uring.h */
enum ring_opcode {
	RING_READV = 1,
	RING_WRITEV = 2,
	RING_FSYNC = 3,
	RING_READ_FIXED = 4,
	RING_WRITE_FIXED = 5,
	RING_READ = 22,
	RING_WRITE = 23,
	RING_READV_FIXED = 60,
	RING_WRITEV_FIXED = 61,
};

#define RING_SKIPS_COMPLETION 0x40 /* IOSQE_CQE_SKIP_SUCCESS */
#define RING_COMPLETES_AGAIN 2     /* IORING_CQE_F_MORE */

enum ring_operation { RING_READS, RING_WRITES, RING_FLUSHES, RING_OTHER };

struct ring_io {
	struct io_kiocb *req;
	struct task_struct *task; /* the submitting task */
	struct file *file;
	enum ring_operation operation;
	s64 result;
	u64 start;  /* with ring_timed(); 0: start not seen */
	u64 offset; /* with ring_timed() */
};

/*
 * 5.18 added the request to completions (502c87d65564), which identifies everything. Before,
 * they have the ring and the request's user_data, which several requests may share at a time.
 */
TP_ARGS(io_uring_complete);
TP_ARGS(io_uring_submit_sqe);

inline_ bool ring_by_user_data(void)
{
	return tp_args_io_uring_complete == 4;
}

struct ring_key {
	u64 of; /* the request, or its ring */
	u64 user_data;
};

struct ring_begun {
	u64 start;
	u64 offset;
	u64 req;
	u64 under_way; /* number of pending requests with this key */
	u64 doubtful;  /* several were pending at a time */
};

MAP(HASH, ring_requests, 1, struct ring_key, struct ring_begun);

inline_ enum ring_operation ring_operation_of(struct io_kiocb *req)
{
	switch (FOLLOW(io_kiocb, req, opcode)) {
	case RING_READ:
	case RING_READV:
	case RING_READ_FIXED:
	case RING_READV_FIXED:
		return RING_READS;
	case RING_WRITE:
	case RING_WRITEV:
	case RING_WRITE_FIXED:
	case RING_WRITEV_FIXED:
		return RING_WRITES;
	case RING_FSYNC:
		return RING_FLUSHES;
	}
	return RING_OTHER;
}

/* 6.13 gave requests their io_uring_task in place of the task (b6f58a3f4aa8). */
struct io_kiocb___with_task {
	struct task_struct *task;
} __attribute__((preserve_access_index));

inline_ struct task_struct *ring_task(struct io_kiocb *req)
{
	struct io_kiocb___with_task *old = (void *)req;

	if (bpf_core_field_exists(old->task))
		return BPF_CORE_READ(old, task);
	return FOLLOW(io_kiocb, req, tctx, task);
}

/* The kiocb of a read or write is at the start of its request. */
inline_ struct kiocb *ring_kiocb(struct io_kiocb *req)
{
	return (struct kiocb *)req;
}

/* 5.19 moved it into a structure (cef216fc32d7). */
struct io_kiocb___with_user_data {
	u64 user_data;
} __attribute__((preserve_access_index));

inline_ void ring_key_of(struct ring_key *key, struct io_kiocb *req)
{
	*key = (struct ring_key){ .of = (u64)req };
	if (!ring_by_user_data())
		return;
	key->of = (u64)FOLLOW(io_kiocb, req, ctx);
	key->user_data = BPF_CORE_READ((struct io_kiocb___with_user_data *)req, user_data);
}

/* Another request has the same key: a completion cannot be matched to one of them. */
inline_ void ring_doubt(struct ring_begun *first, enum ring_operation operation)
{
	if (!first->doubtful) {
		first->doubtful = 1;
		if (ring_operation_of((struct io_kiocb *)first->req) != RING_OTHER)
			count(LEDGER_UNMATCHED);
	}
	__sync_fetch_and_add(&first->under_way, 1);
	if (operation != RING_OTHER)
		count(LEDGER_UNMATCHED);
}

/* The first byte holds the lowest bits, for any size of the flags on this kernel. */
inline_ bool ring_completes(struct io_kiocb *req)
{
	u8 flags = 0;

	bpf_core_read(&flags, sizeof(flags), &req->flags);
	return !(flags & RING_SKIPS_COMPLETION);
}

inline_ int ring_submitted(struct io_kiocb *req)
{
	enum ring_operation operation = ring_operation_of(req);
	struct ring_begun fresh = { .req = (u64)req, .under_way = 1 }, *first;
	struct ring_key key;

	if (!ring_by_user_data() && (operation == RING_OTHER || !ring_completes(req)))
		return 0;
	ring_key_of(&key, req);
	fresh.start = bpf_ktime_get_ns();
	fresh.offset = FOLLOW(kiocb, ring_kiocb(req), ki_pos);
	if (!bpf_map_update_elem(&ring_requests, &key, &fresh,
				 ring_by_user_data() ? BPF_NOEXIST : BPF_ANY))
		return 0;
	first = ring_by_user_data() ? bpf_map_lookup_elem(&ring_requests, &key) : NULL;
	if (first)
		ring_doubt(first, operation);
	else if (operation != RING_OTHER)
		count(LEDGER_UNTRACKED);
	return 0;
}

/* 6.4 renamed it (2ad57931db64); 6.0 reduced its arguments to the request (48863ffd3e81). */
PROGRAM(on_ring_sqe, "tp_btf/io_uring_submit_sqe",
	ring_submitted((void *)(tp_args_io_uring_submit_sqe > 2 ? ARG(ctx, 1) : ARG(ctx, 0))))

/* NULL: not known, or not a read, write or flush. */
inline_ struct io_kiocb *ring_by_key(struct ring_io *io, const struct ring_key *key)
{
	struct ring_begun *s = bpf_map_lookup_elem(&ring_requests, key);
	struct io_kiocb *req = NULL;

	if (!s)
		return NULL;
	if (s->doubtful) {
		__sync_fetch_and_add(&s->under_way, -1);
		if (*(volatile u64 *)&s->under_way)
			return NULL;
	} else {
		req = (struct io_kiocb *)s->req;
		io->start = s->start;
		io->offset = s->offset;
	}
	bpf_map_delete_elem(&ring_requests, key);
	return req;
}

/* The request whose completion is posted; sets its result. */
inline_ struct io_kiocb *ring_completed(u64 *ctx, struct ring_io *io)
{
	struct ring_key key = {};
	struct io_kiocb *req;

	if (ring_by_user_data()) {
		io->result = (s32)ARG(ctx, 2);
		if ((u32)ARG(ctx, 3) & RING_COMPLETES_AGAIN)
			return NULL;
		key.of = ARG(ctx, 0);
		key.user_data = ARG(ctx, 1);
		return ring_by_key(io, &key);
	}
	req = (void *)ARG(ctx, 1);
	if (tp_args_io_uring_complete == 3)
		io->result = FOLLOW(io_uring_cqe, ARG(ctx, 2), res);
	else
		io->result = (s32)ARG(ctx, 3);
	return req;
}

/*
 * File position after a read or write without an explicit offset.
 * 5.15 reuses the request's position field for completion flags.
 */
inline_ u64 ring_position(const struct ring_io *io)
{
	struct file *file = io->file;
	struct kiocb *kiocb = ring_kiocb(io->req);

	return ring_by_user_data() ? BPF_CORE_READ(file, f_pos) : FOLLOW(kiocb, kiocb, ki_pos);
}

/* At io_uring_complete; false: not a request of interest. */
inline_ bool ring_ended(u64 *ctx, struct ring_io *io)
{
	struct io_kiocb *req;
	struct ring_key key;

	*io = (struct ring_io){};
	req = ring_completed(ctx, io);
	if (!req)
		return false;
	io->req = req;
	io->operation = ring_operation_of(req);
	if (io->operation == RING_OTHER)
		return false;
	if (ring_timed() && !ring_by_user_data()) {
		ring_key_of(&key, req);
		if (!ring_by_key(io, &key))
			return false; /* submitted before tracing */
	}
	io->file = FOLLOW(io_kiocb, req, file);
	if (ring_timed() && io->offset == (u64)-1)
		io->offset = ring_position(io) - (io->result > 0 ? io->result : 0);
	io->task = ring_task(req);
	return io->file && io->task;
}

#endif
