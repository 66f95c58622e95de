/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Owners of the kernel's sleeping locks, from the words of the locks.
 *
 * Contexts: all.
 */
#ifndef CORETAP_LOCK_OWNER_BPF_H
#define CORETAP_LOCK_OWNER_BPF_H

#include "lib/core/coretap.bpf.h"

#define OWNER_FLAGS 7UL
#define RWSEM_READER_OWNED 1UL

/* The address of the task that holds it; 0: none, or not known (mutexes of PREEMPT_RT). */
inline_ u64 mutex_owner(u64 lock)
{
	struct mutex *m = (void *)lock;

	if (!bpf_core_field_exists(m->owner))
		return 0;
	return BPF_CORE_READ(m, owner.counter) & ~OWNER_FLAGS;
}

/* The writer. Of readers the kernel keeps no list. */
inline_ u64 rwsem_owner(u64 lock)
{
	struct rw_semaphore *s = (void *)lock;
	u64 owner;

	if (!bpf_core_field_exists(s->owner))
		return 0;
	owner = BPF_CORE_READ(s, owner.counter);
	return owner & RWSEM_READER_OWNED ? 0 : owner & ~OWNER_FLAGS;
}

/* Its type has been a separate one since 5.15 (830e6acc8a1c), before contention_begin. */
inline_ u64 rt_mutex_owner_of(u64 lock)
{
	struct rt_mutex_base *m = (void *)lock;

	if (!bpf_core_type_exists(struct rt_mutex_base))
		return 0;
	return (u64)BPF_CORE_READ(m, owner) & ~OWNER_FLAGS;
}

/* Is this the lock of the address space? */
inline_ bool is_mmap_lock(struct mm_struct *mm, u64 lock)
{
	return mm && lock == (u64)mm + bpf_core_field_offset(mm->mmap_lock);
}

#endif
