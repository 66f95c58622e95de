/* SPDX-License-Identifier: GPL-2.0-only */
/* Block devices, their requests and queues. */
#pragma once

/* block/blk-cgroup.h */
struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

/* include/linux/blk_types.h */
typedef __u32 blk_opf_t;

enum req_op {
	REQ_OP_FLUSH = 2,
};

enum req_flag_bits {
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
};

struct bvec_iter {
	unsigned int bi_size;
};

struct bio_vec {
	struct page *bv_page;
};

struct block_device {
	struct gendisk *bd_disk;
};

struct bio {
	struct block_device *bi_bdev;
	blk_opf_t bi_opf;
	unsigned short bi_flags;
	struct bvec_iter bi_iter;
	struct blkcg_gq *bi_blkg;
	struct bio_vec *bi_io_vec;
};

/* include/linux/blkdev.h */
struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk;
};

/* block/blk.h, include/linux/blk-mq.h */
struct blk_flush_queue {
	unsigned int flush_running_idx : 1;
	struct list_head flush_queue[2];
};

struct blk_mq_hw_ctx {
	struct blk_flush_queue *fq;
};

struct request {
	struct request_queue *q;
	struct blk_mq_hw_ctx *mq_hctx;
	blk_opf_t cmd_flags;
	unsigned int __data_len;
	sector_t __sector;
	struct bio *bio;
	struct bio *biotail;
	struct list_head queuelist;
	u64 start_time_ns;
};
