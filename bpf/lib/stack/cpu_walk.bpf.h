/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks by CPU, for programs that no other such program can interrupt, such as sched_switch.
 *
 * Contexts: preemption off.
 */
#ifndef CORETAP_CPU_WALK_BPF_H
#define CORETAP_CPU_WALK_BPF_H

#include "lib/stack/walk_state.bpf.h"

CPU_SLOTS(walk_scratch, struct walk);

inline_ struct walk *current_walk(void)
{
	return cpu_slot(&walk_scratch);
}

inline_ struct walk *claim_walk(void)
{
	return current_walk();
}

inline_ void release_walk(struct walk *w)
{
}

#endif
