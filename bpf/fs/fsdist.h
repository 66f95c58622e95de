/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_FSDIST_H
#define CORETAP_FSDIST_H

#include "lib/fs/fs_call.h"

struct fsdist_key {
	struct fs_type type; /* empty with --type */
	__u32 operation;     /* enum fs_operation */
	__u32 pad;
};

#endif
