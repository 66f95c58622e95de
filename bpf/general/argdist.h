/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_ARGDIST_H
#define CORETAP_ARGDIST_H

#include "lib/targets/expression.h"

#define ARGDIST_TEXT 256 /* bytes of all texts of a key */

/* The loader shortens keys to the size of the command line's values. */
struct argdist_key {
	struct expression_out values;
	char text[ARGDIST_TEXT];
};

struct argdist_count {
	__u64 count;
};

struct argdist_range {
	__u32 word;
	__u32 negative; /* negative values, by absolute value */
};

#endif
