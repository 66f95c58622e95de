/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls at the two raw_syscalls tracepoints: numbers, arguments, callers, and results.
 *
 * Contexts: the running task, outside of interrupts, at system calls.
 */
#ifndef CORETAP_SYSCALL_BPF_H
#define CORETAP_SYSCALL_BPF_H

#include "lib/core/task.bpf.h"

#define NO_CALL (-1) /* replaces the number at the return from a signal handler */

/* Numbers with special handling. Those of the two 32-bit tables are the same. */
#define CALL32_SIGRETURN 173
#define CALL_OPENAT2 437

#if defined(__TARGET_ARCH_x86)

#define CALL_SIGRETURN 15
#define CALL_READ 0
#define CALL_WRITE 1
#define CALL_PREAD64 17
#define CALL_PWRITE64 18
#define CALL_READV 19
#define CALL_WRITEV 20
#define CALL_SENDFILE 40
#define CALL_SPLICE 275
#define CALL_PREADV 295
#define CALL_PWRITEV 296
#define CALL_COPY_FILE_RANGE 326
#define CALL_CONNECT 42
#define CALL_PREADV2 327
#define CALL_PWRITEV2 328
#define CALL_OPEN 2
#define CALL_FSTAT 5
#define CALL_FSYNC 74
#define CALL_FDATASYNC 75
#define CALL_CREAT 85
#define CALL_OPENAT 257
#define CALL_NEWFSTATAT 262
#define CALL_OPEN_BY_HANDLE_AT 304
#define CALL_STATX 332
#define CALL32_OPENAT 295
#define CALL32_FSTATAT64 300
#define CALL32_OPEN_BY_HANDLE_AT 342
#define CALL32_STATX 383
#define CALL32_SPLICE 313
#define CALL32_PREADV 333
#define CALL32_COPY_FILE_RANGE 377
#define CALL32_CONNECT 362
#define CALL32_PREADV2 378
#define CALL_X32 0x40000000

/* The caller's six arguments. The same at entry and exit, except for
 * calls that change all registers (exec, a return from a signal). */
inline_ void call_arguments(struct pt_regs *regs, bool compat, u64 *args)
{
	if (compat) {
		args[0] = (u32)regs->bx;
		args[1] = (u32)regs->cx;
		args[2] = (u32)regs->dx;
		args[3] = (u32)regs->si;
		args[4] = (u32)regs->di;
		args[5] = (u32)regs->bp;
	} else {
		args[0] = regs->di;
		args[1] = regs->si;
		args[2] = regs->dx;
		args[3] = regs->r10;
		args[4] = regs->r8;
		args[5] = regs->r9;
	}
}

#define TS_COMPAT 2

inline_ s32 call_number(struct pt_regs *regs)
{
	return regs->orig_ax;
}

/* Is the running task's call from the 32-bit table? 64-bit programs can use it, too. */
inline_ bool running_compat(struct task_struct *running, struct pt_regs *regs)
{
	return OF_RUNNING(running, thread_info.status) & TS_COMPAT;
}

#elif defined(__TARGET_ARCH_arm64)

#define CALL_SIGRETURN 139
#define CALL_READ 63
#define CALL_WRITE 64
#define CALL_READV 65
#define CALL_WRITEV 66
#define CALL_PREAD64 67
#define CALL_PWRITE64 68
#define CALL_PREADV 69
#define CALL_PWRITEV 70
#define CALL_SENDFILE 71
#define CALL_SPLICE 76
#define CALL_COPY_FILE_RANGE 285
#define CALL_CONNECT 203
#define CALL_PREADV2 286
#define CALL_PWRITEV2 287
#define CALL_OPENAT 56
#define CALL_OPEN CALL_OPENAT /* arm64 has no open and creat */
#define CALL_CREAT CALL_OPENAT
#define CALL_NEWFSTATAT 79
#define CALL_FSTAT 80
#define CALL_FSYNC 82
#define CALL_FDATASYNC 83
#define CALL_OPEN_BY_HANDLE_AT 265
#define CALL_STATX 291
#define CALL32_OPENAT 322
#define CALL32_FSTATAT64 327
#define CALL32_OPEN_BY_HANDLE_AT 371
#define CALL32_STATX 397
#define CALL32_SPLICE 340
#define CALL32_PREADV 361
#define CALL32_COPY_FILE_RANGE 391
#define CALL32_CONNECT 283
#define CALL32_PREADV2 392
#define CALL_X32 0

inline_ void call_arguments(struct pt_regs *regs, bool compat, u64 *args)
{
	args[0] = regs->orig_x0; /* the result overwrites the first argument */
	for (int i = 1; i < 6; i++)
		args[i] = regs->regs[i];
}

#define PSR_MODE32_BIT 0x10 /* hardware bit; TIF_32BIT's number depends on the kernel */

inline_ s32 call_number(struct pt_regs *regs)
{
	return regs->syscallno;
}

inline_ bool running_compat(struct task_struct *running, struct pt_regs *regs)
{
	return regs->pstate & PSR_MODE32_BIT;
}

#else
#error "numbers of this architecture's system calls"
#endif

inline_ bool call_is_compat(struct pt_regs *regs)
{
	return running_compat(running_task(), regs);
}

/* An index below CALLS, for Format::syscall. */
inline_ u32 call_index(s32 number, bool compat)
{
	u32 index = number;

	if (number == NO_CALL)
		index = compat ? CALL32_SIGRETURN : CALL_SIGRETURN;
	else
		index &= ~CALL_X32;
	if (index > CALLS_OTHER)
		index = CALLS_OTHER;
	return compat ? CALLS_COMPAT + index : index;
}

/* Calls that read files, write to them, or copy from one to another. */
enum file_call {
	FILE_NONE,
	FILE_READ,
	FILE_WRITE,
	FILE_SENDFILE, /* (to, from, ...) */
	FILE_SPLICE,   /* (from, offset, to, ...), as for copy_file_range() */
};

/* For a call with two files: the descriptor that is read, and the one that is written. */
inline_ u32 fd_read(enum file_call call, const u64 *args)
{
	return args[call == FILE_SENDFILE];
}

inline_ u32 fd_written(enum file_call call, const u64 *args)
{
	return args[call == FILE_SENDFILE ? 0 : 2];
}

inline_ enum file_call file_call_of(u32 index)
{
	switch (index) {
	case CALL_READ:
	case CALL_PREAD64:
	case CALL_READV:
	case CALL_PREADV:
	case CALL_PREADV2:
	case CALLS_COMPAT + 3: /* read, readv, pread64, preadv, preadv2 */
	case CALLS_COMPAT + 145:
	case CALLS_COMPAT + 180:
	case CALLS_COMPAT + CALL32_PREADV:
	case CALLS_COMPAT + CALL32_PREADV2:
		return FILE_READ;
	case CALL_WRITE:
	case CALL_PWRITE64:
	case CALL_WRITEV:
	case CALL_PWRITEV:
	case CALL_PWRITEV2:
	case CALLS_COMPAT + 4: /* write, writev, pwrite64, pwritev, pwritev2 */
	case CALLS_COMPAT + 146:
	case CALLS_COMPAT + 181:
	case CALLS_COMPAT + CALL32_PREADV + 1:
	case CALLS_COMPAT + CALL32_PREADV2 + 1:
		return FILE_WRITE;
	case CALL_SENDFILE:
	case CALLS_COMPAT + 187: /* sendfile, sendfile64 */
	case CALLS_COMPAT + 239:
		return FILE_SENDFILE;
	case CALL_SPLICE:
	case CALL_COPY_FILE_RANGE:
	case CALLS_COMPAT + CALL32_SPLICE:
	case CALLS_COMPAT + CALL32_COPY_FILE_RANGE:
		return FILE_SPLICE;
	}
	return FILE_NONE;
}

/* Results internal to the kernel (linux/errno.h). */
#define ERESTARTSYS 512
#define ERESTART_RESTARTBLOCK 516
#define MAX_ERRNO 4095
#define EINTR 4

/* Not finished: interrupted by a signal; the call is then restarted, or ends with EINTR. */
inline_ bool call_interrupted(long result)
{
	return result <= -ERESTARTSYS && result >= -ERESTART_RESTARTBLOCK &&
	       result != -515 /* ENOIOCTLCMD */;
}

inline_ bool call_failed(long result)
{
	return result < 0 && result >= -MAX_ERRNO;
}

#endif
