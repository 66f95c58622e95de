/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SCHEDLAT_H
#define CORETAP_SCHEDLAT_H

#include "lib/core/shared.h"

struct schedlat_key {
	__u32 pid;
	__u32 tid;
	char comm[COMM_LEN];
};

/* Milliseconds since boot in schedlat_value.moment; they wrap after 12 days. */
#define SCHEDLAT_MOMENT_BITS 30
#define SCHEDLAT_MOMENTS (1ULL << SCHEDLAT_MOMENT_BITS)

struct schedlat_value {
	__u64 waits;     /* for a CPU */
	__u64 voluntary; /* switches: it left the CPU to wait for something */
	__u64 preempted; /* it was still runnable */
	__u64 wait_ns;
	__u64 run_ns;
	__u64 idle_ns; /* with --affinity: parts of wait_ns */
	__u64 warm_ns; /* of this, while its caches counted as warm */
	__u64 quota_ns;
	__u64 unknown_ns;
	struct extreme longest; /* wait */
	struct extreme moment;  /* its end; the bits above are the length of the wait */
};

#endif
