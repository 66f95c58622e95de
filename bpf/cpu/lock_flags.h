/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The flags of contention_begin (include/trace/events/lock.h, LCB_F_). */
#ifndef CORETAP_LOCK_FLAGS_H
#define CORETAP_LOCK_FLAGS_H

enum lock_flags {
	LOCK_SPINS = 1,
	LOCK_READ = 2,
	LOCK_WRITE = 4,
	LOCK_RT = 8,
	LOCK_PERCPU = 16,
	LOCK_MUTEX = 32,
};

#endif
