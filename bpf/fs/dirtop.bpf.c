// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* dirtop: reads and writes of files, by directory. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/fs/all_files.bpf.h"
#include "lib/fs/each_file_io.bpf.h"
#include "lib/fs/file_counts.bpf.h"
#include "lib/fs/file_io_text.bpf.h"
#include "lib/paths/file_identity.bpf.h"
#include "fs/dirtop.h"

TABLE(directories, struct dirtop_key, struct file_counts)

static __noinline int file_io_done(struct file_io *io, u64 bytes)
{
	struct dirtop_key key = {};
	struct file_counts *row;
	struct file *file;

	if (!io || !io->file)
		return 0;
	file = io->file;
	inode_identity(&key.directory, BPF_CORE_READ(file, f_path.dentry, d_parent, d_inode));
	row = FILE_IO_ROW(directories, &key, io);
	if (!row)
		return 0;
	file_count(row, io, bytes);
	/* The path of any file in it: the loader removes the name. */
	if (!row->named)
		row->named = send_io_path(&key, sizeof(key), io);
	return 0;
}
