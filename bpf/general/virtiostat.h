/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_VIRTIOSTAT_H
#define CORETAP_VIRTIOSTAT_H

#include "lib/core/shared.h"

struct virtiostat_key {
	char driver[16];
	char device[16];
	char queue[16];
	__u32 index; /* of the queue */
	__u32 pad;
};

/* In: written by the device; out: read by it. */
struct virtiostat_value {
	__u64 buffers;
	__u64 in_segments;
	__u64 out_segments;
	__u64 in_bytes;
	__u64 out_bytes;
};

#endif
