/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_VFSSTAT_H
#define CORETAP_VFSSTAT_H

#include "lib/core/shared.h"

/* One cache line per CPU. */
struct vfsstat_sums {
	__u64 reads;
	__u64 writes;
	__u64 fsyncs;
	__u64 opens;
	__u64 unlinks;
	__u64 mkdirs;
	__u64 rmdirs;
	__u64 creates; /* of the opens */
};

#endif
