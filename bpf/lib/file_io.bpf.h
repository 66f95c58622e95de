/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads and writes of files, as programs make them by system calls: the file is found from the
 * descriptor. The same on every kernel and file system. Not seen: I/O by mappings, by io_uring and
 * AIO, and the kernel's own.
 */
#ifndef CORETAP_FILE_IO_BPF_H
#define CORETAP_FILE_IO_BPF_H

#include "lib/file_id.bpf.h"
#include "lib/filter.bpf.h"
#include "lib/path.bpf.h"
#include "lib/syscall.bpf.h"

OPT(bool, all_files); /* not only regular ones */
OPT(bool, reads_only);
OPT(bool, writes_only);

#define MODE_FORMAT 0170000
#define MODE_REGULAR 0100000

struct file_io {
	struct file *file; /* NULL: none that is wanted */
	u32 fd;
	u16 mode;
	u16 write;
};

/* A descriptor of the call that the running task is in. */
inline_ void file_io_of(struct file_io *io, u32 fd, bool write)
{
	struct file *file;

	*io = (struct file_io){ .fd = fd, .write = write };
	if (write ? reads_only : writes_only)
		return;
	file = current_file(fd);
	if (!file)
		return;
	io->mode = BPF_CORE_READ(file, f_inode, i_mode);
	if (all_files || (io->mode & MODE_FORMAT) == MODE_REGULAR)
		io->file = file;
}

/* What a system call reads and writes: one file, or one of each. */
struct file_call_io {
	struct file_io first, second;
};

inline_ bool file_call_io(struct file_call_io *io, struct pt_regs *regs, s32 number)
{
	bool compat = call_is_compat(regs);
	enum file_call call = file_call_of(call_index(number, compat));
	u64 args[6];

	if (call == FILE_NONE || !keep_current())
		return false;
	call_arguments(regs, compat, args);
	io->second = (struct file_io){};
	if (call == FILE_READ || call == FILE_WRITE) {
		file_io_of(&io->first, args[0], call == FILE_WRITE);
	} else {
		file_io_of(&io->first, call == FILE_SENDFILE ? args[1] : args[0], false);
		file_io_of(&io->second, call == FILE_SENDFILE ? args[0] : args[2], true);
	}
	return io->first.file || io->second.file;
}

/* Which file, beyond the life of its inode's number. */
inline_ void file_identity(struct file_id *id, struct file *file)
{
	inode_identity(id, BPF_CORE_READ(file, f_inode));
}

#endif
