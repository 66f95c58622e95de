/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of system calls on architectures that share the table of new ones
 * (include/uapi/asm-generic/unistd.h).
 *
 * Contexts: all.
 */
#ifndef CORETAP_GENERIC_CALLS_BPF_H
#define CORETAP_GENERIC_CALLS_BPF_H

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
#define CALL_OPEN CALL_OPENAT /* there is no open and creat */
#define CALL_CREAT CALL_OPENAT
#define CALL_NEWFSTATAT 79
#define CALL_FSTAT 80
#define CALL_FSYNC 82
#define CALL_FDATASYNC 83
#define CALL_OPEN_BY_HANDLE_AT 265
#define CALL_STATX 291
#define CALL_RESTART 128
#define CALL_CLONE 220
#define CALL_FORK CALL_CLONE /* there is no fork and vfork */
#define CALL_VFORK CALL_CLONE
#define CALL_RMDIR (-1) /* there is no rmdir, unlink and rename */
#define CALL_UNLINKAT 35
#define CALL_RENAMEAT2 276
#define CALL_UMOUNT 39
#define CALL_MOUNT 40
#define CALL_PIVOT_ROOT 41
#define CALL_X32 0

#endif
