// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* vfssize: sizes of reads and writes by process and file. */
#include "lib/aggregate/aggregate.bpf.h"
#include "lib/fs/all_files.bpf.h"
#include "lib/fs/each_file_io.bpf.h"
#include "lib/fs/file_io_text.bpf.h"
#include "lib/paths/file_identity.bpf.h"
#include "fs/vfssize.h"

OPT(__u64, sizes_step);

TABLE(sizes, struct vfssize_key, struct hist)

static __noinline int file_io_done(struct file_io *io, u64 bytes)
{
	struct vfssize_key key = {};
	struct file_io_owner owner;
	struct hist *h;
	u64 *named;

	if (!io || !io->file)
		return 0;
	file_io_owner(&owner, io);
	__builtin_memcpy(key.comm, owner.comm, COMM_LEN);
	file_identity(&key.file, io->file);
	key.pid = owner.pid;
	key.mode = io->mode & MODE_FORMAT;
	key.write = io->write;
	h = FILE_IO_ROW(sizes, &key, io);
	if (!h)
		return 0;
	hist_log2(h, bytes, 1, sizes_step);
	named = hist_named(h);
	if (!*named)
		*named = send_io_path(&key, sizeof(key), io);
	return 0;
}
