/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls of arm64 (arch/arm64/tools/syscall_32.tbl has those of 32-bit programs).
 *
 * Contexts: the running task, outside of interrupts, at system calls.
 */
#ifndef CORETAP_ARM64_CALLS_BPF_H
#define CORETAP_ARM64_CALLS_BPF_H

#include "lib/syscall/generic_calls.bpf.h"
#include "lib/core/task.bpf.h"

#define CALL_RENAMEAT 38
#define CALL32_OPENAT 322
#define CALL32_FSTATAT64 327
#define CALL32_OPEN_BY_HANDLE_AT 371
#define CALL32_STATX 397
#define CALL32_SPLICE 340
#define CALL32_PREADV 361
#define CALL32_COPY_FILE_RANGE 391
#define CALL32_CONNECT 283
#define CALL32_PREADV2 392
#define CALL32_PREAD_AT 4 /* the index of pread64's offset in 32-bit programs */

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

inline_ u64 call_address(struct pt_regs *regs)
{
	return regs->pc;
}

inline_ s32 saved_call_number(struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, syscallno);
}

inline_ bool saved_compat(struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, pstate) & PSR_MODE32_BIT;
}

/* Before it looks for signals, the kernel sets the task's pc back to the call's instruction. */
inline_ bool call_left_with(struct pt_regs *regs, u32 error, u64 address)
{
	u64 back = address - BPF_CORE_READ(regs, pc);

	return back == 4 || back == 2;
}

#endif
