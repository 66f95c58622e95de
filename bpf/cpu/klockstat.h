/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_KLOCKSTAT_H
#define CORETAP_KLOCKSTAT_H

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
/* Functions that wait for locks, each(function, flags), */
#define KLOCK_WAITS(each)                                      \
	each(__mutex_lock_slowpath, LOCK_MUTEX)                \
	each(__mutex_lock_interruptible_slowpath, LOCK_MUTEX)  \
	each(__mutex_lock_killable_slowpath, LOCK_MUTEX)       \
	each(rwsem_down_read_slowpath, LOCK_READ)              \
	each(rwsem_down_write_slowpath, LOCK_WRITE)
/* take them, each(function, flags, lock was taken), */
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

/* The loader's lists of programs. */
#define KLOCK_STRING(name) #name
#define KLOCK_ENTRIES(function, ...) KLOCK_STRING(on_##function),
#define KLOCK_RETURNS(function, ...) KLOCK_STRING(on_##function##_return),

#endif
