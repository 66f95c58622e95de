/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_CACHEFILES_H
#define CORETAP_CACHEFILES_H

#include "lib/core/shared.h"

enum cachefiles_flags {
	CACHEFILES_DIRTY = 1,     /* has dirty pages */
	CACHEFILES_WRITEBACK = 2, /* has pages that are being written */
	CACHEFILES_MAPPED = 4,    /* a process has mapped it */
	CACHEFILES_DELETED = 8,   /* has no name any more */
	CACHEFILES_FLUSHES = 16,  /* its file system acts on each close */
	CACHEFILES_DEVICE = 32,   /* block device */
	CACHEFILES_HAS_PATH = 64,
};

#define CACHEFILES_NO_FD 0xffffffff
#define CACHEFILES_FS 16

/* An open or mapped file with cached pages; its path follows if this pass has not had it yet. */
struct cachefiles_file {
	__u32 size; /* of the record, with the path */
	__u32 flags;
	__u64 mapping;    /* identity of its cache; never shown */
	__u64 inode;      /* of the cache: below an overlay */
	__u64 open_inode; /* as the process has it open */
	__u64 pages;
	__u64 bytes;
	__u32 device;
	__u32 pid;
	__u32 fd; /* CACHEFILES_NO_FD: mapped */
	__u32 path_kind;
	struct text path;
	__u32 pad;
	__u64 owner;  /* id of the cgroup that most of its pages are charged to; 0: not known */
	__u32 owned;  /* of the pages that were looked at, those of it */
	__u32 looked; /* pages that were looked at and belong to a cgroup */
	char comm[COMM_LEN];
	char fs[CACHEFILES_FS]; /* type of the file system */
};

#endif
