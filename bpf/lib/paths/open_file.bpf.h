/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files by their descriptors, and file types in an inode's mode.
 *
 * Contexts: the running task, outside of interrupts.
 */
#ifndef CORETAP_OPEN_FILE_BPF_H
#define CORETAP_OPEN_FILE_BPF_H

#include "lib/core/follow.bpf.h"
#include "lib/core/task.bpf.h"

FOLLOWED(file);
FOLLOWED(inode);
FOLLOWED(super_block);

#define MODE_FORMAT 0170000
#define MODE_SOCKET 0140000
#define MODE_REGULAR 0100000
#define MODE_BLOCK_DEVICE 0060000
#define MODE_CHARACTER_DEVICE 0020000
#define MODE_DIRECTORY 0040000

#define FMODE_CREATED 0x100000 /* created by the call that opened it */

/* The open file of a descriptor of the running task; NULL: none. */
inline_ struct file *running_file(struct task_struct *running, u32 fd)
{
	struct fdtable *table = OF_RUNNING(running, files, fdt);
	struct file **files, *file = NULL;

	if (fd >= OF_RUNNING(table, max_fds))
		return NULL;
	files = OF_RUNNING(table, fd);
	bpf_core_read(&file, sizeof(file), &files[fd]);
	return file;
}

inline_ struct file *current_file(u32 fd)
{
	return running_file(running_task(), fd);
}

#endif
