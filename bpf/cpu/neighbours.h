/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_NEIGHBOURS_H
#define CORETAP_NEIGHBOURS_H

#include "lib/core/shared.h"

/*
 * Owners of a CPU's time, and to what time is lost, in one number: the id of a cgroup, which real-
 * time tasks have with NEIGHBOUR_RT, or one of these.
 */
#define NEIGHBOUR_RT (1ULL << 63)
#define NEIGHBOUR_OTHER (1ULL << 62)

enum neighbour_other {
	NEIGHBOUR_RAN = 1,     /* it had a CPU */
	NEIGHBOUR_RAN_IRQ,     /* interrupts while it had one */
	NEIGHBOUR_UNUSED,      /* part of the waits in which a CPU that it may use was idle */
	NEIGHBOUR_RECLAIM_OWN, /* freed memory below a limit of the cgroup, or of one above */
	NEIGHBOUR_RECLAIM_MACHINE,
	/* Parts of waits besides those with cgroups. Their counts add up to that of waits. */
	NEIGHBOUR_LIMIT,  /* its quota of CPU time was used up */
	NEIGHBOUR_IDLE,   /* its own CPU was idle */
	NEIGHBOUR_IRQ,    /* its own CPU was in interrupts */
	NEIGHBOUR_KERNEL, /* threads of the kernel, also as a victim */
	NEIGHBOUR_UNKNOWN,
};

#define NEIGHBOUR(which) (NEIGHBOUR_OTHER | NEIGHBOUR_##which)

struct neighbour_key {
	__u64 victim; /* id of a cgroup, or NEIGHBOUR(KERNEL) */
	__u64 to;
};

struct neighbour_sum {
	__u64 ns;
	__u64 count; /* of waits, of which this was the first part */
};

#define NEIGHBOUR_CLOCKS 16

/* The wait or the turn of a task that is under way. */
struct neighbour_open {
	__u64 victim;
	__u64 ran_ns, irq_ns;
	__u64 limit_ns;
	__u64 ns[NEIGHBOUR_CLOCKS]; /* of the wait, with these owners */
	__u64 owners[NEIGHBOUR_CLOCKS];
};

#endif
