/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_WALLTIME_H
#define CORETAP_WALLTIME_H

#include "lib/sched/wait_facts.h"
#include "lib/core/shared.h"

/* States without a reason; the others are waits. */
enum wall_state {
	WALL_CPU,
	WALL_IRQ,
	WALL_STOLEN,
	WALL_BUSY,
	WALL_IDLE,
	WALL_LIMIT,
	WALL_UNKNOWN,
	WALL_STATES
};

/* With stacks for a graph: rows of samples of the CPUs' clock, which have a number and no time. */
#define WALL_IN_USER 0x400000
#define WALL_IN_KERNEL 0x800000

struct wall_sum {
	__u64 ns;
	__u64 count;
	__u64 longest_ns;
};

struct wall_wait {
	__u64 witness; /* of the above; 0: not in use */
	struct wall_sum sum;
};

#define WALL_WAITS 4 /* a power of two */

/* Where the time of a thread went, from begin_ns until until_ns; the rest is in the map's rows. */
struct walltime_account {
	struct event_head head;
	__u64 thread, process; /* unique numbers; owners of rows */
	__u64 begin_ns, until_ns;
	struct task_id who;
	__u64 ended;
	/* The wait that is under way. */
	__u64 open_ns, open_witness, open_stack, open_user;
	struct wall_sum states[WALL_STATES];
	struct wall_wait waits[WALL_WAITS]; /* the last ones without a stack */
};

struct walltime_row {
	__u64 owner;   /* process, or with by_thread thread */
	__u64 witness; /* of a wait or a sample, or the state of a wait for a CPU, part of the
			  account */
	__u64 stack;   /* key in `stacks`; 0: none */
	__u64 user;    /* the same of the user stack, with which it left the CPU */
};

/* Of which waits there is a histogram: a state of enum wall_state, or facts of a wait. */
struct walltime_kind {
	__u64 witness;
	__u64 stack;
};

#endif
