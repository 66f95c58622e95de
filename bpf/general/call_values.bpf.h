/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records of calls, filled from entry to return: memory that an argument points to may change
 * before the return. The loader knows their length: it sets the size of the map's values.
 */
#ifndef CORETAP_CALL_VALUES_BPF_H
#define CORETAP_CALL_VALUES_BPF_H

#include "general/call_values.h"
#include "lib/core/emit.bpf.h"
#include "lib/targets/expression.bpf.h"
#include "lib/targets/traced_calls.bpf.h"

/* True if the target with this number has a return, whose number is the next one. */
const volatile __u8 call_has_return[CALL_VALUES_TARGETS] = {};

static const char no_call_values[CALL_VALUES_MOST];

/* Key: address of the call in its task's record. The loader uses the map's name. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, 0);
	__uint(max_entries, 1);
	__uint(key_size, 8);
	__uint(value_size, CALL_VALUES_MOST);
} call_values SEC(".maps");

inline_ bool waits_for_return(u64 id)
{
	barrier_var(id);
	return id < CALL_VALUES_TARGETS && call_has_return[id & (CALL_VALUES_TARGETS - 1)];
}

/* The record of a call at its entry; replaces an older
 * one at this address. NULL: the map is full. */
inline_ void *call_values_begin(void *call)
{
	u64 key = expression_address(call);

	if (bpf_map_update_elem(&call_values, &key, no_call_values, BPF_ANY)) {
		count(LEDGER_UNTRACKED);
		return NULL;
	}
	return bpf_map_lookup_elem(&call_values, &key);
}

/* NULL: no record. */
inline_ void *call_values_of(void *call)
{
	u64 key = expression_address(call);

	return bpf_map_lookup_elem(&call_values, &key);
}

inline_ void call_values_done(void *call)
{
	u64 key = expression_address(call);

	bpf_map_delete_elem(&call_values, &key);
}

#endif
