/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_KLOCKSTAT_H
#define CORETAP_KLOCKSTAT_H

#include "cpu/lock_flags.h"
#include "lib/core/shared.h"

struct klockstat_key {
	__u64 stack; /* starts with the caller */
	__u64 lock;  /* with --per-lock */
	__u32 flags; /* enum lock_flags: type of lock */
	__u32 tid;   /* with --per-thread */
	char comm[COMM_LEN];
};

struct klockstat_sums {
	__u64 count;
	__u64 total_ns;
	struct extreme longest;
};

/* clang-format off */
/* Functions that take locks, each(function, flags, lock was taken), */
#define KLOCK_TAKES(each)                                             \
	each(mutex_lock, LOCK_MUTEX, true)                            \
	each(mutex_lock_interruptible, LOCK_MUTEX, !(s32)ctx[1])      \
	each(mutex_lock_killable, LOCK_MUTEX, !(s32)ctx[1])           \
	each(mutex_trylock, LOCK_MUTEX, (s32)ctx[1])                  \
	each(down_read, LOCK_READ, true)                              \
	each(down_read_interruptible, LOCK_READ, !(s32)ctx[1])        \
	each(down_read_killable, LOCK_READ, !(s32)ctx[1])             \
	each(down_read_trylock, LOCK_READ, (s32)ctx[1])               \
	each(down_write, LOCK_WRITE, true)                            \
	each(down_write_killable, LOCK_WRITE, !(s32)ctx[1])           \
	each(down_write_trylock, LOCK_WRITE, (s32)ctx[1])
/* or release them. */
#define KLOCK_RELEASES(each)              \
	each(mutex_unlock, LOCK_MUTEX)    \
	each(up_read, LOCK_READ)          \
	each(up_write, LOCK_WRITE)        \
	each(downgrade_write, LOCK_WRITE)
/* clang-format on */

#endif
