/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Largest values of an interval, as members of a CPU_TABLE's values: only one
 * CPU writes each, as 5.10 has no compare-and-exchange. The loader increments
 * the interval number before it reads the values of the previous one.
 *
 * Contexts: preemption off.
 */
#ifndef CORETAP_EXTREME_BPF_H
#define CORETAP_EXTREME_BPF_H

#include "lib/aggregate/aggregate.bpf.h"

volatile u32 extreme_interval;

inline_ void extreme_add(struct extreme *x, u64 value)
{
	const u64 most = (1ULL << EXTREME_BITS) - 1;
	u32 interval = extreme_interval;
	u64 *slot = &x->slots[interval & 1];
	u64 new = (u64)(u16)interval << EXTREME_BITS | (value < most ? value : most);

	if ((*slot ^ new) >> EXTREME_BITS || new > *slot)
		*slot = new;
}

#endif
