/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_WRITEBACK_H
#define CORETAP_WRITEBACK_H

#include "lib/core/shared.h"

/* enum wb_reason of all kernels, renumbered: the numbers differ between kernels. */
#define WRITEBACK_REASONS(X)              \
	X(BACKGROUND, "background")       \
	X(VMSCAN, "vmscan")               \
	X(SYNC, "sync")                   \
	X(PERIODIC, "periodic")           \
	X(LAPTOP_TIMER, "laptop_timer")   \
	X(FS_FREE_SPACE, "fs_free_space") \
	X(FORKER_THREAD, "forker_thread") \
	X(FOREIGN_FLUSH, "foreign_flush") \
	X(DONTCACHE, "dontcache")

#define WRITEBACK_NUMBER(name, word) WRITEBACK_##name,
enum writeback_reason { WRITEBACK_REASONS(WRITEBACK_NUMBER) };

struct writeback_event {
	struct event_head head;
	struct task_id who; /* the requester; not known: the kernel itself */
	__u64 pages;
	__u64 latency_ns;
	__u32 disk;   /* 0: none */
	__u32 reason; /* the running kernel's enum wb_reason */
	char device[64];
};

/* A process that was throttled, and the device. */
struct throttle_key {
	__u32 pid;
	__u32 disk;      /* 0: none */
	char device[32]; /* its name; zeros for a disk */
	char comm[COMM_LEN];
};

struct throttle_sums {
	__u64 sleeps;
	__u64 total_ns;
	struct extreme longest;
};

#endif
