/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Operations on files and directories, traced in one of two ways, and reads, writes and flushes
 * through io_uring (lib/fs/ring_io.bpf.h):
 *
 * - System calls, from entry to exit, with the file found by its descriptor. The same on every
 *   kernel and file system. Not seen: I/O by mappings and AIO, I/O of the kernel itself, stat by
 *   path, opens and stat through io_uring. A failed open has no file.
 * - Functions of one type of file system, if programs can be attached to functions
 *   (FS_FUNCTIONS): other files cause no overhead. Not seen: I/O by mappings and AIO, opens of
 *   directories.
 *
 * Contexts: the running task, outside of interrupts, preemptible at functions. Counts UNMATCHED.
 */
#ifndef CORETAP_FS_CALL_BPF_H
#define CORETAP_FS_CALL_BPF_H

#include "lib/core/filter.bpf.h"
#include "lib/fs/fs_call.h"
#include "lib/paths/path.bpf.h"
#include "lib/fs/timed_ring_io.bpf.h"
#include "lib/core/since.bpf.h"
#include "lib/core/program.bpf.h"
#include "lib/syscall/syscall.bpf.h"

const volatile struct fs_type wanted_types[FS_TYPES] = {};

#define AT_EMPTY 0x1000 /* AT_EMPTY_PATH */

/* File systems that cannot be mounted by users: pipes, sockets, memfd. */
#define SB_NOUSER 0x80000000

struct fs_call {
	u64 start; /* 0: none in progress */
	u64 end;
	u64 latency;
	u64 frame;                      /* of a function: the task's stack address */
	struct file *file;              /* of a system call or a request */
	struct file_system_type *known; /* the kernel's type whose name is in `type` */
	struct fs_type type;
	u32 fd;
	u32 index;
	u32 operation; /* enum fs_operation */
	u32 pad;
};

TASK_SLOT(struct fs_call);

inline_ enum fs_operation fs_operation_of(u32 index)
{
	switch (file_call_of(index)) {
	case FILE_READ:
	case FILE_SENDFILE:
	case FILE_SPLICE:
		return FS_READ;
	case FILE_WRITE:
		return FS_WRITE;
	case FILE_NONE:
		break;
	}
	switch (index) {
#if CALL_OPEN != CALL_OPENAT
	case CALL_OPEN:
	case CALL_CREAT:
#endif
	case CALL_OPENAT:
	case CALL_OPENAT2:
	case CALL_OPEN_BY_HANDLE_AT:
	case CALLS_COMPAT + 5: /* open, creat */
	case CALLS_COMPAT + 8:
	case CALLS_COMPAT + CALL32_OPENAT:
	case CALLS_COMPAT + CALL32_OPEN_BY_HANDLE_AT:
	case CALLS_COMPAT + CALL_OPENAT2:
		return FS_OPEN;
	case CALL_FSYNC:
	case CALL_FDATASYNC:
	case CALLS_COMPAT + 118: /* fsync, fdatasync */
	case CALLS_COMPAT + 148:
		return FS_FSYNC;
	case CALL_FSTAT:
	case CALL_NEWFSTATAT:
	case CALL_STATX:
	case CALLS_COMPAT + 108: /* fstat, fstat64 */
	case CALLS_COMPAT + 197:
	case CALLS_COMPAT + CALL32_FSTATAT64:
	case CALLS_COMPAT + CALL32_STATX:
		return FS_GETATTR;
	}
	return FS_OPERATIONS;
}

/* Does a call of the stat family name its file by a path? Its file is then never known. */
inline_ bool fs_by_path(u32 index, const u64 *args)
{
	bool statx = index == CALL_STATX || index == CALLS_COMPAT + CALL32_STATX;
	char first = 0;

	if (!statx && index != CALL_NEWFSTATAT && index != CALLS_COMPAT + CALL32_FSTATAT64)
		return false;
	if (!((statx ? args[2] : args[3]) & AT_EMPTY))
		return true;
	bpf_probe_read_user(&first, sizeof(first), (void *)args[1]);
	return first;
}

inline_ bool fs_type_wanted(const struct fs_type *type)
{
	if (!wanted_types[0].name[0])
		return true;
	for (int i = 0; i < FS_TYPES; i++)
		if (type->name[0] == wanted_types[i].name[0] &&
		    type->name[1] == wanted_types[i].name[1])
			return true;
	return false;
}

/* For a file or directory; NULL: anything else, or a file system that cannot be mounted. */
inline_ struct file_system_type *fs_type_of_inode(struct inode *inode)
{
	u32 mode = FOLLOW(inode, inode, i_mode) & MODE_FORMAT;
	struct super_block *sb;

	if (mode != MODE_REGULAR && mode != MODE_DIRECTORY)
		return NULL;
	sb = FOLLOW(inode, inode, i_sb);
	return FOLLOW(super_block, sb, s_flags) & SB_NOUSER ? NULL :
							      FOLLOW(super_block, sb, s_type);
}

inline_ struct file_system_type *fs_type_of(struct file *file)
{
	return file ? fs_type_of_inode(FOLLOW(file, file, f_inode)) : NULL;
}

/* Compares the type's name; cached, as most of a task's files are of one type. */
inline_ bool fs_wants(struct fs_call *call, struct file_system_type *type)
{
	if (!type)
		return false;
	if (type != call->known) {
		call->known = type;
		call->type = (struct fs_type){};
		bpf_probe_read_kernel_str(&call->type, sizeof(call->type),
					  BPF_CORE_READ(type, name));
	}
	return fs_type_wanted(&call->type);
}

/* At sys_enter. */
inline_ int fs_call_entered(struct pt_regs *regs, s32 number)
{
	struct task_struct *running = running_task();
	bool compat = running_compat(running, regs);
	u32 index = call_index(number, compat), fd;
	enum fs_operation operation = fs_operation_of(index);
	enum file_call moves = file_call_of(index);
	bool two = moves == FILE_SENDFILE || moves == FILE_SPLICE;
	struct file_system_type *type = NULL;
	struct file *file = NULL;
	struct fs_call *call;
	u64 args[6];

	if (operation == FS_OPERATIONS || !tracing_since || !keep_current())
		return 0;
	call_arguments(regs, compat, args);
	if (operation == FS_GETATTR && fs_by_path(index, args))
		return 0;
	fd = two ? fd_read(moves, args) : args[0];
	if (operation != FS_OPEN) {
		file = running_file(running, fd);
		type = fs_type_of(file);
		if (!type && !two)
			return 0; /* a pipe, a socket, a terminal */
	}
	call = running_slot(running, true);
	if (!call)
		return 0;
	call->start = 0;
	if (operation != FS_OPEN && !fs_wants(call, type)) {
		/* Of two files, the one that is read is preferred, if it is wanted. */
		if (!two)
			return 0;
		operation = FS_WRITE;
		fd = fd_written(moves, args);
		file = running_file(running, fd);
		if (!fs_wants(call, fs_type_of(file)))
			return 0;
	}
	call->index = index;
	call->operation = operation;
	call->fd = fd;
	call->file = file;
	call->start = bpf_ktime_get_ns();
	return 0;
}

/* At sys_exit: the call that ends, with its file; NULL: not wanted. */
inline_ struct fs_call *fs_call_ended(struct pt_regs *regs, s64 result)
{
	struct task_struct *running = running_task();
	struct fs_call *call = running_slot(running, false);

	if (!call || !call->start)
		return NULL;
	call->end = bpf_ktime_get_ns();
	call->latency = since(call->start, call->end);
	call->start = 0;
	/* The exit of the recorded call was not seen; this is another one. */
	if (call_index(call_number(regs), running_compat(running, regs)) != call->index) {
		count(LEDGER_UNMATCHED);
		return NULL;
	}
	if (call->operation != FS_OPEN)
		return call;
	if (result < 0)
		return NULL;
	call->fd = result;
	call->file = running_file(running, result);
	return fs_wants(call, fs_type_of(call->file)) ? call : NULL;
}

/*
 * At the entry of a function. A call within another operation is left out, such as the
 * flush of a write with O_SYNC. Entry and exit of a call have their arguments at the same
 * stack address, and inner calls have them below: this shows a call whose exit was missed.
 */
inline_ int fs_function_entered(u64 *ctx)
{
	struct fs_call *call = tracing_since ? wanted_slot() : NULL;

	if (!call)
		return 0;
	if (call->start && (u64)ctx < call->frame)
		return 0;
	if (end_missed(call->start))
		count(LEDGER_UNMATCHED);
	call->frame = (u64)ctx;
	call->start = bpf_ktime_get_ns();
	return 0;
}

/* At the function's exit; NULL: a call that is left out. */
inline_ struct fs_call *fs_function_ended(u64 *ctx, enum fs_operation operation)
{
	struct fs_call *call = current_slot(false);

	if (!call || !call->start || call->frame != (u64)ctx)
		return NULL;
	call->end = bpf_ktime_get_ns();
	call->latency = since(call->start, call->end);
	call->start = 0;
	call->operation = operation;
	return call;
}

/* AIO and io_uring may wait for completion elsewhere; io_uring has its own tracepoints. */
inline_ bool fs_waits(struct kiocb *io)
{
	return !io->ki_complete;
}

#define PF_IO_WORKER 0x10 /* of io_uring */

inline_ bool fs_of_ring(void)
{
	return OF_RUNNING(running_task(), flags) & PF_IO_WORKER;
}

/* The programs at exits may preempt each other, so each has a separate buffer, at this number. */
enum fs_end {
	FS_END_READ,
	FS_END_WRITE,
	FS_END_SPLICE,
	FS_END_OPEN,
	FS_END_FSYNC,
	FS_END_GETATTR,
	FS_ENDS,
};

/* At its exit: `ended(place, call, path, inode, result, offset)`. */
#define FS_END(function, name, place, operation, of_path, of_inode, result, offset, ended) \
	TRACING(name, "fexit/" function)                                                   \
	{                                                                                  \
		struct fs_call *call = fs_function_ended(ctx, operation);                  \
		struct inode *inode;                                                       \
                                                                                           \
		if (!call)                                                                 \
			return 0;                                                          \
		inode = of_inode;                                                          \
		if (fs_wants(call, fs_type_of_inode(inode)))                               \
			ended(place, call, of_path, inode, result, offset);                \
		return 0;                                                                  \
	}

/* The function advances the position. */
inline_ u64 fs_spliced_from(u64 position, s64 result)
{
	u64 offset = 0;

	bpf_probe_read_kernel(&offset, sizeof(offset), (void *)position);
	return result > 0 ? offset - result : offset;
}

#define FS_FILE0 ((struct file *)ctx[0])
#define FS_FILE1 ((struct file *)ctx[1])
#define FS_IO ((struct kiocb *)ctx[0])
#define FS_MOVED ((s64)ctx[2] > 0 ? (s64)ctx[2] : 0)
#define FS_PATH ((struct path *)ctx[1])

/*
 * Programs at the functions of a file system whose names start with its type
 * (src/cli/options_fs.cpp), exits first. sendfile() and splice() read through
 * filemap_splice_read() since 6.5 (2cb1e08985e3), before by read_iter().
 */
#define FS_FUNCTIONS(ended)                                                                       \
	FS_END("TYPE_file_read_iter", on_read_end, FS_END_READ, FS_READ, &FS_IO->ki_filp->f_path, \
	       FS_IO->ki_filp->f_inode, (s64)ctx[2], FS_IO->ki_pos - FS_MOVED, ended)             \
	FS_END("TYPE_file_write_iter", on_write_end, FS_END_WRITE, FS_WRITE,                      \
	       &FS_IO->ki_filp->f_path, FS_IO->ki_filp->f_inode, (s64)ctx[2],                     \
	       FS_IO->ki_pos - FS_MOVED, ended)                                                   \
	FS_END("filemap_splice_read", on_splice_end, FS_END_SPLICE, FS_READ, &FS_FILE0->f_path,   \
	       FS_FILE0->f_inode, (s64)ctx[5], fs_spliced_from(ctx[1], ctx[5]), ended)            \
	FS_END("TYPE_file_open", on_open_end, FS_END_OPEN, FS_OPEN, &FS_FILE1->f_path,            \
	       FS_FILE1->f_inode, (s32)ctx[2], 0, ended)                                          \
	FS_END("TYPE_file_fsync", on_fsync_end, FS_END_FSYNC, FS_FSYNC, &FS_FILE0->f_path,        \
	       FS_FILE0->f_inode, (s32)ctx[4], 0, ended)                                          \
	FS_END("TYPE_file_getattr", on_getattr_end, FS_END_GETATTR, FS_GETATTR, FS_PATH,          \
	       FS_PATH->dentry->d_inode, (s32)ctx[5], 0, ended)                                   \
	PROGRAM(on_read, "fentry/TYPE_file_read_iter",                                            \
		fs_waits(FS_IO) ? fs_function_entered(ctx) : 0)                                   \
	PROGRAM(on_write, "fentry/TYPE_file_write_iter",                                          \
		fs_waits(FS_IO) ? fs_function_entered(ctx) : 0)                                   \
	PROGRAM(on_splice, "fentry/filemap_splice_read", fs_function_entered(ctx))                \
	PROGRAM(on_open, "fentry/TYPE_file_open", fs_function_entered(ctx))                       \
	PROGRAM(on_fsync, "fentry/TYPE_file_fsync", !fs_of_ring() ? fs_function_entered(ctx) : 0) \
	PROGRAM(on_getattr, "fentry/TYPE_file_getattr", fs_function_entered(ctx))

inline_ enum fs_operation fs_operation_of_ring(enum ring_operation operation)
{
	switch (operation) {
	case RING_READS:
		return FS_READ;
	case RING_WRITES:
		return FS_WRITE;
	default:
		return FS_FSYNC;
	}
}

/* At the completion of a request of io_uring; false: not wanted. */
inline_ bool fs_ring_ended(u64 *ctx, struct ring_io *ended, struct fs_call *call)
{
	struct file_system_type *type;

	*call = (struct fs_call){};
	if (!ring_ended(ctx, ended))
		return false;
	type = fs_type_of(ended->file);
	if (!type || !keep_task(ended->task) || !fs_wants(call, type))
		return false;
	call->file = ended->file;
	call->operation = fs_operation_of_ring(ended->operation);
	call->end = bpf_ktime_get_ns();
	call->latency = since(ended->start, call->end);
	return true;
}

#endif
