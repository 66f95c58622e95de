/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads and writes of files, as programs make them by system calls: the file is found from the
 * descriptor. The same on every kernel and file system. Not seen: I/O by mappings, by io_uring and
 * AIO, and the kernel's own.
 */
#ifndef CORETAP_FILE_IO_BPF_H
#define CORETAP_FILE_IO_BPF_H

#include "lib/filter.bpf.h"
#include "lib/path.bpf.h"
#include "lib/syscall.bpf.h"

#ifdef FILE_IO_OF_ALL /* what the tool shows is the kind of file */
#define all_files true
#else
OPT(bool, all_files); /* not only regular ones */
#endif
OPT(bool, reads_only);
OPT(bool, writes_only);

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
		file_io_of(&io->first, fd_read(call, args), false);
		file_io_of(&io->second, fd_written(call, args), true);
	}
	return io->first.file || io->second.file;
}

/*
 * add(struct file_io *, u64 bytes) is called for each file of a system call that succeeded. It is
 * a function of its own, or there would be two copies of it.
 */
#define ON_FILE_IO(add)                                                       \
	SEC("tp_btf/sys_exit")                                                \
	int on_exit(u64 *ctx)                                                 \
	{                                                                     \
		struct pt_regs *regs = (void *)ctx[0];                        \
		struct file_call_io io;                                       \
		s64 bytes = ctx[1];                                           \
                                                                              \
		if (bytes < 0 || !file_call_io(&io, regs, call_number(regs))) \
			return 0;                                             \
		add(&io.first, bytes);                                        \
		add(&io.second, bytes);                                       \
		return 0;                                                     \
	}

#endif
