/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tables of reads and writes of files, by the key that a tool defines.
 *
 * Contexts: all.
 */
#ifndef CORETAP_FILE_COUNTS_BPF_H
#define CORETAP_FILE_COUNTS_BPF_H

#include "lib/fs/file_counts.h"
#include "lib/fs/file_io.bpf.h"

inline_ void file_count(struct file_counts *row, const struct file_io *io, u64 bytes)
{
	u64 write = io->write;

	barrier_var(write); /* or the compiler makes it an index, whose
			     * bounds the verifier does not know */
	if (write) {
		__sync_fetch_and_add(&row->writes, 1);
		__sync_fetch_and_add(&row->write_bytes, bytes);
	} else {
		__sync_fetch_and_add(&row->reads, 1);
		__sync_fetch_and_add(&row->read_bytes, bytes);
	}
}

#endif
