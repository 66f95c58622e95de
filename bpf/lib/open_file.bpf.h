/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files by their descriptors, and what kind of file an inode's mode says. */
#ifndef CORETAP_OPEN_FILE_BPF_H
#define CORETAP_OPEN_FILE_BPF_H

#include "lib/task.bpf.h"

#define MODE_FORMAT 0170000
#define MODE_SOCKET 0140000
#define MODE_REGULAR 0100000
#define MODE_BLOCK_DEVICE 0060000
#define MODE_CHARACTER_DEVICE 0020000
#define MODE_DIRECTORY 0040000

/* The open file behind a descriptor of the running task; NULL: none. */
inline_ struct file *current_file(u32 fd)
{
	struct file **files, *file = NULL;
	struct fdtable *table;
	u32 room;

	if (has_current_btf()) {
		table = bpf_get_current_task_btf()->files->fdt;
		files = table->fd;
		room = table->max_fds;
	} else {
		table = BPF_CORE_READ(current_task(), files, fdt);
		files = BPF_CORE_READ(table, fd);
		room = BPF_CORE_READ(table, max_fds);
	}
	if (fd < room)
		bpf_core_read(&file, sizeof(file), &files[fd]);
	return file;
}

#endif
