/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts from which the loader computes percentiles (include/coretap/percentiles.hpp).
 *
 * Contexts: those of aggregate.bpf.h.
 */
#ifndef CORETAP_PERCENTILE_BPF_H
#define CORETAP_PERCENTILE_BPF_H

#include "lib/aggregate/aggregate.bpf.h"
#include "lib/aggregate/percentile.h"

inline_ u32 fine_bucket(u64 value)
{
	return bucket_of(value, FINE_BITS);
}

/* name_add() counts a value for a key; its member `bucket` is the last and is set by the macro. */
#define PERCENTILES(name, key_type)                       \
	TABLE(name, key_type, u64)                        \
	inline_ void name##_add(key_type *key, u64 value) \
	{                                                 \
		u64 *n;                                   \
                                                          \
		key->bucket = fine_bucket(value);         \
		n = name##_row(key);                      \
		if (n)                                    \
			__sync_fetch_and_add(n, 1);       \
	}

#endif
