/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CORETAP_SLABRATETOP_H
#define CORETAP_SLABRATETOP_H

#include "lib/core/shared.h"

struct slabratetop_key {
	__u64 cache; /* address of the struct kmem_cache; for kmalloc the object size */
};

struct slabratetop_counts {
	__u64 allocs;
	__u64 bytes;
	__u64 named; /* its name was sent */
};

#endif
