/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fine counts of values: 64 buckets in each power of two, so that one is at most 1/64 wide. */
#ifndef CORETAP_PERCENTILE_H
#define CORETAP_PERCENTILE_H

#define FINE_BITS 6
#define FINE_STEPS (1 << FINE_BITS) /* values below twice this have exact buckets */

#endif
