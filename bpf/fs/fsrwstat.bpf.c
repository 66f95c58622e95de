// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* fsrwstat: reads and writes by file system type. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/fs/each_file_io.bpf.h"
#include "lib/fs/file_counts.bpf.h"
#include "lib/paths/row_text.bpf.h"
#include "fs/fsrwstat.h"

TABLE(types, struct fsrwstat_key, struct file_counts)

inline_ bool wanted_mode(u16 mode)
{
	return true;
}

static __noinline int file_io_done(struct file_io *io, u64 bytes)
{
	struct file_system_type *type;
	struct fsrwstat_key key = {};
	struct file_counts *row;
	struct file *file;

	if (!io || !io->file)
		return 0;
	file = io->file;
	type = BPF_CORE_READ(file, f_inode, i_sb, s_type);
	key.type = (u64)type;
	row = FILE_IO_ROW(types, &key, io);
	if (!row)
		return 0;
	file_count(row, io, bytes);
	if (!row->named)
		row->named = send_row_name(key.type, BPF_CORE_READ(type, name));
	return 0;
}
