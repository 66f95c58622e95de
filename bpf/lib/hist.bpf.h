/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* log2 histograms: one per CPU, or one per key of the tool. */
#ifndef CORETAP_HIST_BPF_H
#define CORETAP_HIST_BPF_H

#include "lib/coretap.bpf.h"

OPT(__u64, hist_unit_ns); /* what a slot's bounds are multiples of: 1000 for microseconds */
OPT(bool, hist_keyed);    /* any part of the key is asked for */

CPU_SLOTS(hist_cpus, struct hist);

inline_ u32 log2_u64(u64 v)
{
	u32 r = 0;

	if (v >> 32) {
		r += 32;
		v >>= 32;
	}
	if (v >> 16) {
		r += 16;
		v >>= 16;
	}
	if (v >> 8) {
		r += 8;
		v >>= 8;
	}
	if (v >> 4) {
		r += 4;
		v >>= 4;
	}
	if (v >> 2) {
		r += 2;
		v >>= 2;
	}
	return r + (v >> 1);
}

inline_ void hist_into_n(struct hist *h, u64 ns, u64 n)
{
	u32 slot = log2_u64(ns / hist_unit_ns);

	opaque(slot);
	slot &= HIST_SLOTS - 1;
	__sync_fetch_and_add(&h->slots[slot], n);
	__sync_fetch_and_add(&h->total_ns, ns * n);
}

inline_ void hist_into(struct hist *h, u64 ns)
{
	hist_into_n(h, ns, 1);
}

/* The loader gives the size; entries only ever grow, a report is the difference of two readings. */
#define HIST_KEYS(key_type)                                                            \
	struct {                                                                       \
		__uint(type, BPF_MAP_TYPE_HASH);                                       \
		__uint(map_flags, 0);                                                  \
		__uint(max_entries, 1);                                                \
		__type(key, key_type);                                                 \
		__type(value, struct hist);                                            \
	} hist_keys SEC(".maps");                                                      \
	static const struct hist hist_zero;                                            \
	inline_ void hist_add_key(key_type *key, u64 ns)                               \
	{                                                                              \
		struct hist *h;                                                        \
                                                                                       \
		h = bpf_map_lookup_elem(&hist_keys, key);                              \
		if (!h) {                                                              \
			bpf_map_update_elem(&hist_keys, key, &hist_zero, BPF_NOEXIST); \
			h = bpf_map_lookup_elem(&hist_keys, key);                      \
		}                                                                      \
		if (h)                                                                 \
			hist_into(h, ns);                                              \
		else                                                                   \
			count(LEDGER_UNTRACKED);                                       \
	}

/* n values that are the same. */
inline_ void hist_add_n(u64 ns, u64 n)
{
	struct hist *h = cpu_slot(&hist_cpus);

	if (h)
		hist_into_n(h, ns, n);
}

inline_ void hist_add(u64 ns)
{
	hist_add_n(ns, 1);
}

#endif
