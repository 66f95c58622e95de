/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Histograms while they are recorded: 8 slots in each power of two instead of one. */
#ifndef CORETAP_FINE_H
#define CORETAP_FINE_H

#include "lib/core/shared.h"

#define HIST_FINE_BITS 3
#define HIST_FINE_STEPS (1 << HIST_FINE_BITS)
/* Values of 64 bits; slots 0 to HIST_FINE_STEPS - 1 are single values. */
#define HIST_FINE_SLOTS ((64 - HIST_FINE_BITS + 1) * HIST_FINE_STEPS)

/* In the place of a struct hist. */
struct fine_hist {
	__u64 slots[HIST_FINE_SLOTS];
	__u64 total; /* sum of the values, in units */
	__u64 named; /* as in struct hist */
};

#endif
