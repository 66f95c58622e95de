// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* swapin: page faults that wait for reads from swap. */
#include "lib/block/bio.bpf.h"
#include "lib/aggregate/extreme.bpf.h"
#include "lib/mm/fault_starts.bpf.h"
#include "lib/mm/mm.bpf.h"
#include "memory/swapin.h"

#define REQ_OP_READ 0
#define BIO_CLONED 1 /* bit number of the flag */

struct swap_fault {
	struct fault fault;
	u64 read; /* start time; 0: no read from swap */
	u64 disk;
};

TASK_SLOT(struct swap_fault);

inline_ struct fault *fault_slot(bool make)
{
	return (struct fault *)current_slot(make);
}

inline_ void fault_begins(struct fault *f)
{
	((struct swap_fault *)f)->read = 0;
}

CPU_TABLE(waits, struct swapin_key, struct swapin_counts)

/*
 * A page being swapped in is anonymous or shared memory without valid data
 * yet; a page that a program reads into with O_DIRECT has valid data.
 */
inline_ bool awaits_swap(void *page)
{
	u64 swapbacked = 1ULL << bpf_core_enum_value(enum pageflags, PG_swapbacked);
	u64 uptodate = 1ULL << bpf_core_enum_value(enum pageflags, PG_uptodate);

	return (folio_flags(page) & (swapbacked | uptodate)) == swapbacked;
}

inline_ struct swapin_counts *row_of(u32 disk)
{
	struct swapin_key key = { .pid = current_tgid(), .disk = disk };

	bpf_get_current_comm(key.comm, sizeof(key.comm));
	return waits_row(&key);
}

inline_ int begin(struct gendisk *from, u64 bytes)
{
	u32 disk = disk_number(from);
	struct swapin_counts *row = row_of(disk);
	struct swap_fault *f = current_slot(false);

	if (row)
		row->bytes += bytes;
	if (!f || f->read)
		return 0;
	f->read = bpf_ktime_get_ns();
	f->disk = disk;
	return 0;
}

/* Bios passed on by device mapper are clones. */
TRACING(on_bio, "tp_btf/block_bio_queue")
{
	struct bio *bio = queued_bio(ctx);

	if ((bio->bi_opf & 0xff) != REQ_OP_READ || bio->bi_flags & 1 << BIO_CLONED)
		return 0;
	if (!awaits_swap(BPF_CORE_READ(bio, bi_io_vec, bv_page)) || !keep_current())
		return 0;
	return begin(bio_disk(bio), bio->bi_iter.bi_size);
}

/* Disks in memory, such as zram, read pages without a bio before 6.3 (3222d8c2a7f8). */
inline_ int read_at_once(struct block_device *from, void *page)
{
	if (!awaits_swap(page) || !keep_current())
		return 0;
	return begin(BPF_CORE_READ(from, bd_disk), page_bytes);
}

FUNC_ENTRY(on_read, bdev_read_page, read_at_once((void *)arg[0], (void *)arg[2]))

SEC("perf_event/major-faults")
int on_major(void *ctx)
{
	struct swap_fault *f = current_slot(false);
	struct swapin_counts *row;
	u64 ns;

	if (!f || !f->read || !keep_current())
		return 0;
	ns = since(f->read, bpf_ktime_get_ns());
	f->read = 0;
	row = row_of(f->disk);
	if (!row)
		return 0;
	row->count++;
	row->total_ns += ns;
	extreme_add(&row->longest, ns);
	return 0;
}
