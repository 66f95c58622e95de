/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bios and their disks: what differs between kernels.
 *
 * Contexts: all.
 */
#ifndef CORETAP_BIO_BPF_H
#define CORETAP_BIO_BPF_H

#include "lib/block/disk.bpf.h"

/* 5.12 gave bios their device in place of its disk (309dca309fc3). */
struct bio___with_disk {
	struct gendisk *bi_disk;
} __attribute__((preserve_access_index));

inline_ struct gendisk *bio_disk(struct bio *bio)
{
	struct bio___with_disk *old = (void *)bio;

	if (bpf_core_field_exists(old->bi_disk))
		return old->bi_disk;
	return bio->bi_bdev->bd_disk;
}

inline_ bool bio_on_wanted_disk(struct bio *bio)
{
	return !filter_disk_on || wanted_disk(disk_number(bio_disk(bio)));
}

/* 5.11 dropped the queue from this tracepoint (e8a676d61c07). */
TP_ARGS(block_bio_queue);

inline_ struct bio *queued_bio(u64 *ctx)
{
	return (void *)(tp_args_block_bio_queue >= 2 ? ARG(ctx, 1) : ARG(ctx, 0));
}

#endif
