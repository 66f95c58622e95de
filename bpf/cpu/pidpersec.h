/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_PIDPERSEC_H
#define CORETAP_PIDPERSEC_H

#include "lib/core/shared.h"

/* Only increase. One cache line per CPU. */
struct pidpersec_sums {
	__u64 processes;
	__u64 threads;
	__u64 pad[6];
};

#endif
