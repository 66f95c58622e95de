/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls of x86-64 (arch/x86/entry/syscalls/syscall_64.tbl, syscall_32.tbl).
 *
 * Contexts: the running task, outside of interrupts, at system calls.
 */
#ifndef CORETAP_X86_CALLS_BPF_H
#define CORETAP_X86_CALLS_BPF_H

#include "lib/core/task.bpf.h"

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
#define CALL_RESTART 219
#define CALL_CLONE 56
#define CALL_FORK 57
#define CALL_VFORK 58
#define CALL_RENAME 82
#define CALL_RMDIR 84
#define CALL_UNLINK 87
#define CALL_UNLINKAT 263
#define CALL_RENAMEAT 264
#define CALL_RENAMEAT2 316
#define CALL_PIVOT_ROOT 155
#define CALL_MOUNT 165
#define CALL_UMOUNT 166
#define CALL32_PREAD_AT 3 /* the index of pread64's offset in 32-bit programs */

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

inline_ u64 call_address(struct pt_regs *regs)
{
	return regs->ip;
}

/* As call_number(), of registers that must be read by a helper. */
inline_ s32 saved_call_number(struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, orig_ax);
}

inline_ bool saved_compat(struct pt_regs *regs)
{
	return running_compat(running_task(), regs);
}

inline_ bool call_left_with(struct pt_regs *regs, u32 error, u64 address)
{
	return (s32)BPF_CORE_READ(regs, orig_ax) >= 0 && BPF_CORE_READ(regs, ax) == -(u64)error;
}

#endif
