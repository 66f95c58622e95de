/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_CPUUNCLAIMED_H
#define CORETAP_CPUUNCLAIMED_H

#include "lib/shared.h"

struct cpuunclaimed_sums {
	__u64 events; /* ends of waits; or samples */
	__u64 span_ns;
	__u64 idle_ns;      /* of all CPUs */
	__u64 waiting_ns;   /* of all tasks */
	__u64 unclaimed_ns; /* of idle CPUs, one for each task that waits and may use it */
	__u64 barred_ns;    /* the same, where no such task may use them */
	__u64 accounted;    /* times: not 0 where barred_ns is known */
};

#endif
