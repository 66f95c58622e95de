/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls at the two raw_syscalls tracepoints: numbers, arguments, callers, and results.
 *
 * Contexts: the running task, outside of interrupts, at system calls.
 */
#ifndef CORETAP_SYSCALL_BPF_H
#define CORETAP_SYSCALL_BPF_H

#include "lib/syscall/calls.bpf.h"

#define NO_CALL (-1) /* replaces the number at the return from a signal handler */

/* Numbers with special handling. Those of the two 32-bit tables are the same. */
#define CALL32_SIGRETURN 173
#define CALL_OPENAT2 437

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
