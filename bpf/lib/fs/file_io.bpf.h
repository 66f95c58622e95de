/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads and writes of files by system calls, with the file found by its
 * descriptor, and by io_uring (lib/fs/ring_io.bpf.h). The same on every kernel and
 * file system. Not seen: I/O by mappings and AIO, and I/O of the kernel itself.
 * The tool defines wanted_mode(); lib/fs/all_files.bpf.h has one that obeys --all-files.
 *
 * Contexts: the running task, outside of interrupts, and workers of io_uring.
 */
#ifndef CORETAP_FILE_IO_BPF_H
#define CORETAP_FILE_IO_BPF_H

#include "lib/core/filter.bpf.h"
#include "lib/paths/path.bpf.h"
#include "lib/fs/ring_io.bpf.h"
#include "lib/syscall/syscall.bpf.h"

OPT(bool, reads_only);
OPT(bool, writes_only);

/* Is this kind of file wanted? */
inline_ bool wanted_mode(u16 mode);

struct file_io {
	struct file *file;        /* NULL: no wanted file */
	struct task_struct *task; /* the submitter to a ring; NULL: a call of the running task */
	u32 fd;
	u16 mode;
	u16 write;
};

inline_ bool file_io_wanted(bool write)
{
	return !(write ? reads_only : writes_only);
}

inline_ void file_io_by(struct file_io *io, struct file *file)
{
	io->mode = FOLLOW(file, file, f_inode, i_mode);
	if (wanted_mode(io->mode))
		io->file = file;
}

/* By a descriptor in the running task's current system call. */
inline_ void file_io_of(struct file_io *io, struct task_struct *running, u32 fd, bool write)
{
	struct file *file;

	*io = (struct file_io){ .fd = fd, .write = write };
	if (!file_io_wanted(write))
		return;
	file = running_file(running, fd);
	if (file)
		file_io_by(io, file);
}

/* The I/O of a system call: one file, or one read and one written. */
struct file_call_io {
	struct file_io first, second;
};

inline_ bool file_call_io(struct file_call_io *io, struct pt_regs *regs, s32 number)
{
	struct task_struct *running = running_task();
	bool compat = running_compat(running, regs);
	enum file_call call = file_call_of(call_index(number, compat));
	u64 args[6];

	if (call == FILE_NONE || !keep_current())
		return false;
	call_arguments(regs, compat, args);
	io->second = (struct file_io){};
	if (call == FILE_READ || call == FILE_WRITE) {
		file_io_of(&io->first, running, args[0], call == FILE_WRITE);
	} else {
		file_io_of(&io->first, running, fd_read(call, args), false);
		file_io_of(&io->second, running, fd_written(call, args), true);
	}
	return io->first.file || io->second.file;
}

/* A completed request of io_uring. */
inline_ bool file_ring_io(struct file_io *io, u64 *ctx, struct ring_io *ended)
{
	if (!ring_ended(ctx, ended) || ended->operation == RING_FLUSHES)
		return false;
	*io = (struct file_io){ .task = ended->task, .write = ended->operation == RING_WRITES };
	if (file_io_wanted(io->write) && keep_task(io->task))
		file_io_by(io, ended->file);
	return io->file;
}

/* The owner of the I/O. */
struct file_io_owner {
	u32 pid, tid;
	char comm[COMM_LEN];
};

inline_ void file_io_owner(struct file_io_owner *owner, const struct file_io *io)
{
	struct task_struct *running, *task = io->task;

	*owner = (struct file_io_owner){};
	if (task) {
		owner->pid = process_of(task);
		owner->tid = thread_of(task);
		bpf_core_read_str(owner->comm, COMM_LEN, &task->comm);
	} else if (has_current_btf()) {
		running = bpf_get_current_task_btf();
		owner->pid = task_tgid(running);
		owner->tid = task_tid(running);
		task_comm(running, owner->comm);
	} else {
		owner->pid = current_tgid();
		owner->tid = current_tid();
		bpf_get_current_comm(owner->comm, COMM_LEN);
	}
}

/* The row of a table (lib/aggregate/aggregate.bpf.h) for this I/O. */
#define FILE_IO_ROW(name, key, io) \
	(owner_parts && (io)->task ? name##_row_of_task(key, (io)->task) : name##_row(key))

#endif
