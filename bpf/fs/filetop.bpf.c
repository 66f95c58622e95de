// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* filetop: reads and writes by file and thread. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/fs/all_files.bpf.h"
#include "lib/fs/each_file_io.bpf.h"
#include "lib/fs/file_counts.bpf.h"
#include "lib/fs/file_io_text.bpf.h"
#include "lib/paths/file_identity.bpf.h"
#include "fs/filetop.h"

TABLE(files, struct filetop_key, struct file_counts)

static __noinline int file_io_done(struct file_io *io, u64 bytes)
{
	struct filetop_key key = {};
	struct file_io_owner owner;
	struct file_counts *row;

	if (!io || !io->file)
		return 0;
	file_io_owner(&owner, io);
	file_identity(&key.file, io->file);
	key.pid = owner.pid;
	key.tid = owner.tid;
	key.mode = io->mode & MODE_FORMAT;
	__builtin_memcpy(key.comm, owner.comm, COMM_LEN);
	row = FILE_IO_ROW(files, &key, io);
	if (!row)
		return 0;
	file_count(row, io, bytes);
	if (!row->named)
		row->named = send_io_path(&key, sizeof(key), io);
	return 0;
}
