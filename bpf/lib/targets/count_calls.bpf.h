/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts calls of the traced functions: funccount, and tools that count one set of functions.
 *
 * Contexts: all, NMIs included.
 */
#ifndef CORETAP_COUNT_CALLS_BPF_H
#define CORETAP_COUNT_CALLS_BPF_H

#include "lib/core/cpu.bpf.h"
#include "lib/targets/each_target.bpf.h"
#include "lib/targets/count_calls.h"

TARGET_SLOTS(calls, struct count_calls_counts)

inline_ int at_target(void *ctx, u64 id, bool user)
{
	struct count_calls_counts *c;

	if (id >= target_count || !keep_here())
		return 0;
	c = calls_of(id);
	if (c)
		__sync_fetch_and_add(&c->count, 1); /* an interrupt may update the same counter */
	return 0;
}

#endif
