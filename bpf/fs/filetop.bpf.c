// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* filetop: reads and writes by file and thread. */
#include "lib/aggregate.bpf.h"
#include "lib/file_io.bpf.h"
#include "lib/row_text.bpf.h"
#include "fs/filetop.h"

TABLE(files, struct filetop_key, struct filetop_counts)

static __noinline int add(struct file_io *io, u64 bytes)
{
	struct filetop_key key = {};
	struct filetop_counts *row;
	u64 write;

	if (!io || !io->file)
		return 0;
	file_identity(&key.file, io->file);
	key.pid = current_tgid();
	key.tid = current_tid();
	key.mode = io->mode & MODE_FORMAT;
	bpf_get_current_comm(key.comm, sizeof(key.comm));
	row = files_row(&key);
	if (!row)
		return 0;
	write = io->write;
	barrier_var(write); /* or the compiler makes it an index, of which the verifier knows too
			       little */
	if (write) {
		__sync_fetch_and_add(&row->writes, 1);
		__sync_fetch_and_add(&row->write_bytes, bytes);
	} else {
		__sync_fetch_and_add(&row->reads, 1);
		__sync_fetch_and_add(&row->read_bytes, bytes);
	}
	if (!row->named)
		row->named = send_row_path(&key, sizeof(key), io->file);
	return 0;
}

SEC("tp_btf/sys_exit")
int on_exit(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	struct file_call_io io;
	s64 bytes = ctx[1];

	if (bytes < 0 || !file_call_io(&io, regs, call_number(regs)))
		return 0;
	add(&io.first, bytes);
	add(&io.second, bytes);
	return 0;
}
