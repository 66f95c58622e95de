/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How far a disk moves from one request to the next, in the order in which they are issued. */
#ifndef CORETAP_SEEK_BPF_H
#define CORETAP_SEEK_BPF_H

#include "lib/block.bpf.h"

/* Where the previous I/O on a disk ended. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} next_sectors SEC(".maps");

/*
 * Of a request with data: sectors from the end of the disk's previous one to its start, below 0
 * backwards. False: there was none before it.
 */
inline_ bool disk_seek(struct request *rq, s64 *distance)
{
	u64 next = rq->__sector + (rq->__data_len >> 9);
	u32 disk = rq_disk(rq);
	u64 *known = bpf_map_lookup_elem(&next_sectors, &disk);

	if (!known) {
		if (bpf_map_update_elem(&next_sectors, &disk, &next, BPF_ANY))
			count(LEDGER_UNTRACKED);
		return false;
	}
	*distance = rq->__sector - *known;
	*known = next;
	return true;
}

#endif
