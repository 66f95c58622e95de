/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FS_CALL_H
#define CORETAP_FS_CALL_H

#include "lib/core/shared.h"

/* Operations of system calls on a file system. */
enum fs_operation {
	FS_READ,
	FS_WRITE,
	FS_OPEN,
	FS_FSYNC,
	FS_GETATTR,
	FS_OPERATIONS /* none of these */
};

/* Name of a file system type as in /proc/filesystems, padded with zeros. */
#define FS_TYPE_WORDS 2

struct fs_type {
	__u64 name[FS_TYPE_WORDS];
};

/* The types selected by --type: some have two names. Empty: all. */
#define FS_TYPES 2

#endif
