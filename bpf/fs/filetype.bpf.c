// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* filetype: reads and writes by process and file type. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/fs/each_file_io.bpf.h"
#include "lib/fs/file_counts.bpf.h"
#include "fs/filetype.h"

TABLE(types, struct filetype_key, struct file_counts)

inline_ bool wanted_mode(u16 mode)
{
	return true;
}

static __noinline int file_io_done(struct file_io *io, u64 bytes)
{
	struct filetype_key key = {};
	struct file_io_owner owner;
	struct file_counts *row;

	if (!io || !io->file)
		return 0;
	file_io_owner(&owner, io);
	key.pid = owner.pid;
	key.mode = io->mode & MODE_FORMAT;
	__builtin_memcpy(key.comm, owner.comm, COMM_LEN);
	row = FILE_IO_ROW(types, &key, io);
	if (row)
		file_count(row, io, bytes);
	return 0;
}
