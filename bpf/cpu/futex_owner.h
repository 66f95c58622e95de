/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Owners of futexes, from the words of locks of C libraries. Both sides use it. */
#ifndef CORETAP_FUTEX_OWNER_H
#define CORETAP_FUTEX_OWNER_H

#include "cpu/blocked_kinds.h"
#include "lib/core/shared.h"

/* Of the second argument of futex(2). */
#define FUTEX_COMMAND 127 /* without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME */
#define FUTEX_WAIT 0
#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_LOCK_PI2 13
#define FUTEX_PRIVATE 128

/* Bits of words that hold a thread id. */
#define FUTEX_WAITED 0x80000000U
#define FUTEX_TID 0x3fffffffU

#define GLIBC_CONTENDED 2 /* value of a lock that threads wait for */
#define GLIBC_KINDS 0x400 /* values of `kind` are below */

/* A mutex of glibc on 64-bit machines; nptl/sysdeps/pthread/struct_mutex.h. Other locks of
 * programs have the first word only. */
struct futex_words {
	__u32 lock, count, owner, nusers, kind;
};

struct futex_owner {
	__u32 kind; /* enum blocked_kind */
	__u32 tid;  /* as the process sees it; 0: not known */
};

/* Can a task wait for a lock by this command? */
static inline __attribute__((always_inline, unused)) int futex_waits(__u32 command)
{
	return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_LOCK_PI ||
	       command == FUTEX_LOCK_PI2;
}

/* Of a wait by `command` while the word has `value`. Words that cannot be read are 0. */
static inline __attribute__((always_inline, unused)) struct futex_owner
owner_of_futex(__u32 command, __u32 value, const struct futex_words *m)
{
	struct futex_owner owner = { BLOCKED_FUTEX, 0 };

	if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2) {
		owner.kind = BLOCKED_FUTEX_PI;
		owner.tid = m->lock & FUTEX_TID;
	} else if (value & FUTEX_WAITED && value & FUTEX_TID) {
		owner.kind = BLOCKED_FUTEX_TID;
		owner.tid = m->lock & FUTEX_TID;
	} else if (value == GLIBC_CONTENDED) {
		owner.kind = BLOCKED_FUTEX_LOCK;
		if (m->owner && m->nusers && m->kind < GLIBC_KINDS) {
			owner.kind = BLOCKED_FUTEX_MUTEX;
			owner.tid = m->owner;
		}
	} else if (value > GLIBC_CONTENDED && value == m->lock && value <= FUTEX_TID) {
		/* A thread that is joined has its id in the word until it ends. */
		owner.kind = BLOCKED_JOIN;
		owner.tid = value;
	}
	return owner;
}

#endif
