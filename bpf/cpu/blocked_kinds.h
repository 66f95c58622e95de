/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_BLOCKED_KINDS_H
#define CORETAP_BLOCKED_KINDS_H

/* Objects that tasks wait for. */
enum blocked_kind {
	BLOCKED_OTHER, /* known by the reason of the wait only */
	BLOCKED_MUTEX,
	BLOCKED_RWSEM_READ,
	BLOCKED_RWSEM_WRITE,
	BLOCKED_MMAP_READ,
	BLOCKED_MMAP_WRITE,
	BLOCKED_PERCPU_READ,
	BLOCKED_PERCPU_WRITE,
	BLOCKED_RTMUTEX,
	BLOCKED_FUTEX,       /* a condition, or a lock that does not name its owner */
	BLOCKED_FUTEX_LOCK,  /* a lock, without its owner */
	BLOCKED_FUTEX_MUTEX, /* a mutex of glibc, with the owner behind the word */
	BLOCKED_FUTEX_TID,   /* the word has the owner: robust mutexes, musl */
	BLOCKED_FUTEX_PI,    /* the same; the kernel hands it over */
	BLOCKED_JOIN,        /* the end of a thread */
	BLOCKED_FLOCK,
	BLOCKED_FCNTL,
	BLOCKED_OFD,
	BLOCKED_KINDS
};

#endif
