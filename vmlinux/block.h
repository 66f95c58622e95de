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
typedef __u8 blk_status_t;

enum req_op {
	REQ_OP_FLUSH = 2,
};

enum req_flag_bits {
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
	__REQ_RAHEAD = 19,
};

struct bvec_iter {
	sector_t bi_sector;
	unsigned int bi_size;
};

struct bio_vec {
	struct page *bv_page;
};

struct block_device {
	struct gendisk *bd_disk;
};

struct bdev_inode {
	struct block_device bdev;
	struct inode vfs_inode;
};

struct bio {
	struct block_device *bi_bdev;
	blk_opf_t bi_opf;
	unsigned short bi_flags;
	blk_status_t bi_status;
	struct bvec_iter bi_iter;
	struct blkcg_gq *bi_blkg;
	struct bio_vec *bi_io_vec;
};

/* include/linux/blkdev.h */
struct gendisk {
	int major;
	int first_minor;
	char disk_name[32];
};

/* block/elevator.h */
struct elevator_type {
	const char *elevator_name;
};

struct elevator_queue {
	struct elevator_type *type;
};

struct request_queue {
	struct elevator_queue *elevator;
	struct gendisk *disk;
};

/* block/blk.h, include/linux/blk-mq.h */
typedef __u32 req_flags_t;

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
	req_flags_t rq_flags;
	unsigned int __data_len;
	sector_t __sector;
	struct bio *bio;
	struct bio *biotail;
	struct list_head queuelist;
	u64 alloc_time_ns;
	u64 start_time_ns;
};
