/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters for each of many keys, read by the loader as rows of a table. */
#ifndef CORETAP_TABLE_BPF_H
#define CORETAP_TABLE_BPF_H

#include "lib/coretap.bpf.h"

/*
 * The loader gives the size; entries only ever grow, a report is the difference of two readings.
 * Counters are added to by __sync_fetch_and_add: several CPUs may have the same key.
 */
#define TABLE(key_type, value_type)                                                 \
	struct {                                                                    \
		__uint(type, BPF_MAP_TYPE_HASH);                                    \
		__uint(map_flags, 0);                                               \
		__uint(max_entries, 1);                                             \
		__type(key, key_type);                                              \
		__type(value, value_type);                                          \
	} table SEC(".maps");                                                       \
	static const value_type table_zero;                                         \
	/* The counters of a key; NULL, and counted, where there is no room. */     \
	inline_ value_type *table_row(key_type *key)                                \
	{                                                                           \
		value_type *v = bpf_map_lookup_elem(&table, key);                   \
                                                                                    \
		if (!v) {                                                           \
			bpf_map_update_elem(&table, key, &table_zero, BPF_NOEXIST); \
			v = bpf_map_lookup_elem(&table, key);                       \
		}                                                                   \
		if (!v)                                                             \
			count(LEDGER_UNTRACKED);                                    \
		return v;                                                           \
	}

#endif
