/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Seek distances of a disk between requests, in the order of issue.
 *
 * Contexts: at block_rq_issue, with preemption off. Counts UNTRACKED.
 */
#ifndef CORETAP_SEEK_BPF_H
#define CORETAP_SEEK_BPF_H

#include "lib/block/block.bpf.h"

/*
 * End of the previous I/O on a disk. A place in an array is found without a helper call; the first
 * disk that hashes to it takes it, guarded by an entry in the map. Other disks are in the map.
 */
#define SEEK_PLACES 64

struct seek_place {
	u64 disk; /* plus one; 0: free */
	u64 next;
};

MAP(ARRAY, seek_places, SEEK_PLACES, u32, struct seek_place);

MAP(HASH, next_sectors, 1, u32, u64); /* by disk, or by ~place */

inline_ u64 *next_sector(u32 disk, struct seek_place *p)
{
	if (p && p->disk == disk + 1ULL)
		return &p->next;
	return bpf_map_lookup_elem(&next_sectors, &disk);
}

inline_ void remember_disk(u32 disk, u32 place, struct seek_place *p, u64 next)
{
	u32 claim = ~place;

	if (p && !p->disk && !bpf_map_update_elem(&next_sectors, &claim, &next, BPF_NOEXIST)) {
		p->next = next;
		*(volatile u64 *)&p->disk = disk + 1ULL;
		return;
	}
	map_put(&next_sectors, &disk, &next);
}

/*
 * For a request with data: sectors from the end of the disk's previous
 * request to its start, negative if backwards. False: no previous request.
 */
inline_ bool disk_seek(struct request *rq, s64 *distance)
{
	u64 next = rq->__sector + (rq->__data_len >> 9);
	u32 disk = rq_disk(rq), place = disk * 0x9e3779b9U >> 26;
	struct seek_place *p = bpf_map_lookup_elem(&seek_places, &place);
	u64 *known = next_sector(disk, p);

	if (!known) {
		remember_disk(disk, place, p, next);
		return false;
	}
	*distance = rq->__sector - *known;
	*known = next;
	return true;
}

#endif
