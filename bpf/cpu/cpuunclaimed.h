/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_CPUUNCLAIMED_H
#define CORETAP_CPUUNCLAIMED_H

#include "lib/core/shared.h"

struct cpuunclaimed_sums {
	__u64 events; /* ended waits; or samples */
	__u64 span_ns;
	__u64 idle_ns;      /* sum over all CPUs */
	__u64 waiting_ns;   /* sum over all tasks */
	__u64 unclaimed_ns; /* of idle CPUs, one per waiting task allowed to use it */
	__u64 barred_ns;    /* the same, if no waiting task is allowed to use them */
	__u64 accounted;    /* updates; not 0 if barred_ns is valid */
};

#endif
