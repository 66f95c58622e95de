// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bufgrow: tasks that grow the page cache of block devices. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/block/disk.bpf.h"
#include "lib/core/filter.bpf.h"
#include "lib/mm/mm.bpf.h"
#include "lib/paths/open_file.bpf.h"
#include "lib/core/program.bpf.h"
#include "fs/bufgrow.h"

OPT(bool, by_disk);

TABLE(buffers, struct bufgrow_key, struct bufgrow_counts)

/* The whole disk, also of a partition. */
inline_ u32 disk_of(struct inode *inode)
{
	struct bdev_inode *whole =
		(void *)inode - bpf_core_field_offset(struct bdev_inode, vfs_inode);

	return disk_number(BPF_CORE_READ(whole, bdev.bd_disk));
}

/* The row of the running task; NULL: the page is not a block device's, or not wanted. */
inline_ struct bufgrow_counts *row_of(void *folio)
{
	struct address_space *mapping = (void *)folio_mapping(folio);
	struct inode *inode = BPF_CORE_READ(mapping, host);
	struct bufgrow_key key = {};

	if ((BPF_CORE_READ(inode, i_mode) & MODE_FORMAT) != MODE_BLOCK_DEVICE || !keep_current())
		return NULL;
	if (filter_disk_on && !wanted_disk(disk_of(inode))) {
		count(LEDGER_FILTERED);
		return NULL;
	}
	key.pid = current_tgid();
	process_comm(key.comm);
	if (by_disk)
		key.disk = BPF_CORE_READ(inode, i_rdev);
	return buffers_row(&key);
}

inline_ int moved(void *folio, const bool added)
{
	struct bufgrow_counts *row = row_of(folio);

	if (row)
		__sync_fetch_and_add(added ? &row->added : &row->removed, folio_pages(folio));
	return 0;
}

PROGRAM(on_add, "tp_btf/mm_filemap_add_to_page_cache", moved((void *)ctx[0], true))
PROGRAM(on_remove, "tp_btf/mm_filemap_delete_from_page_cache", moved((void *)ctx[0], false))
