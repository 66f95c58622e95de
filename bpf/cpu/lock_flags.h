/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The flags of contention_begin (include/trace/events/lock.h, LCB_F_). */
#ifndef CORETAP_LOCK_FLAGS_H
#define CORETAP_LOCK_FLAGS_H

#include "lib/core/shared.h"

enum lock_flags {
	LOCK_SPINS = 1,
	LOCK_READ = 2,
	LOCK_WRITE = 4,
	LOCK_RT = 8,
	LOCK_PERCPU = 16,
	LOCK_MUTEX = 32,
};

/* A spinlock has no flags; a mutex may spin before it sleeps. */
static inline __attribute__((always_inline, unused)) int lock_spins(__u32 flags)
{
	return !flags || (flags & (LOCK_SPINS | LOCK_MUTEX)) == LOCK_SPINS;
}

/* clang-format off */
/* Functions that wait for locks, each(function, flags). */
#define KLOCK_WAITS(each)                                      \
	each(__mutex_lock_slowpath, LOCK_MUTEX)                \
	each(__mutex_lock_interruptible_slowpath, LOCK_MUTEX)  \
	each(__mutex_lock_killable_slowpath, LOCK_MUTEX)       \
	each(rwsem_down_read_slowpath, LOCK_READ)              \
	each(rwsem_down_write_slowpath, LOCK_WRITE)
/* clang-format on */

/* The loader's lists of programs. */
#define KLOCK_ENTRIES(function, ...) progs::on_##function,
#define KLOCK_RETURNS(function, ...) progs::on_##function##_return,

#endif
