/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Outstanding allocations, each with the stack that allocated it. */
#ifndef CORETAP_OUTSTANDING_BPF_H
#define CORETAP_OUTSTANDING_BPF_H

#include "lib/core/filter.bpf.h"
#include "lib/stack/stack.bpf.h"
#include "memory/memleak.h"

OPT(bool, sum_by_site);          /* also keep sums by stack */
OPT_OR(__u32, sample_one_in, 1); /* only one of this many addresses */
OPT(__u64, sample_salt);         /* selects the addresses: differs in each run */
OPT(__u64, min_bytes);
OPT_OR(__u64, max_bytes, ~0ULL);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, 0);
	__uint(max_entries, 1);
	__type(key, struct alloc_key);
	__type(value, struct alloc_info);
} allocs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, 0);
	__uint(max_entries, 1);
	__type(key, struct alloc_site);
	__type(value, struct alloc_sum);
} alloc_sums SEC(".maps");

/* By address only, so that allocation and free get the same result. */
inline_ bool alloc_sampled(u64 address)
{
	u64 h = (address ^ sample_salt) * 0x9e3779b97f4a7c15ULL;

	if (sample_one_in <= 1)
		return true;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ULL;
	return (u32)(h >> 32) % sample_one_in == 0;
}

/* Is it to be tracked? Called before its stack is walked. */
inline_ bool alloc_wanted(u64 address, u64 bytes)
{
	if (!alloc_sampled(address))
		return false;
	if (bytes >= min_bytes && bytes <= max_bytes)
		return true;
	return filtered();
}

/* A sum may be negative temporarily: the free may be counted first. */
inline_ void add_to_site(struct alloc_key *key, struct alloc_info *h, bool allocated)
{
	struct alloc_site site = { .stack = h->stack, .owner = key->owner };
	struct alloc_sum *sum = bpf_map_lookup_elem(&alloc_sums, &site);

	if (!sum) {
		struct alloc_sum first = { .tgid = h->tgid };

		__builtin_memcpy(first.comm, h->comm, sizeof(first.comm));
		bpf_map_update_elem(&alloc_sums, &site, &first, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&alloc_sums, &site);
	}
	if (!sum) {
		count(LEDGER_UNTRACKED);
		return;
	}
	__sync_fetch_and_add(&sum->bytes, allocated ? h->bytes : -h->bytes);
	__sync_fetch_and_add(&sum->count, allocated ? 1ULL : -1ULL);
	if (allocated)
		sum->newest_ns = h->time_ns;
}

/* Removes an allocation; copies it to `was` unless that is NULL. */
inline_ bool track_removal(struct alloc_key *key, struct alloc_info *was)
{
	struct alloc_info *h;

	if (tracing_stopped || !alloc_sampled(key->address))
		return false;
	if (!was)
		return !bpf_map_delete_elem(&allocs, key);
	h = bpf_map_lookup_elem(&allocs, key);
	if (!h)
		return false;
	*was = *h; /* after the deletion the entry may be reused */
	if (bpf_map_delete_elem(&allocs, key))
		return false;
	if (sum_by_site)
		add_to_site(key, was, false);
	return true;
}

inline_ void track_free(struct alloc_key *key)
{
	struct alloc_info was;

	track_removal(key, sum_by_site ? &was : NULL);
}

/* An older entry for this address was freed unseen: addresses of live memory are never returned. */
inline_ void track_alloc(struct alloc_key *key, struct alloc_info *h)
{
	if (tracing_stopped)
		return;
	if (sum_by_site)
		track_free(key);
	if (bpf_map_update_elem(&allocs, key, h, BPF_ANY))
		count(LEDGER_UNTRACKED);
	else if (sum_by_site)
		add_to_site(key, h, true);
}

inline_ void send_note(enum alloc_note_kind kind, u64 time_ns, u64 address, u64 bytes)
{
	struct alloc_note *n = emit_begin(sizeof(*n));

	if (!n)
		return;
	n->time_ns = time_ns;
	n->address = address;
	n->bytes = bytes;
	n->owner = bpf_get_current_pid_tgid() >> 32;
	n->tgid = current_tgid();
	n->kind = kind;
	emit_end(n);
}

/* Processes without tracked allocations are not reported. */
inline_ bool may_own_allocs(void)
{
	u32 tgid = current_tgid();

	return tgid && filter_has_tgid(tgid);
}

TRACING(on_process_exit, "tp_btf/sched_process_exit")
{
	if (last_thread_exits(ctx) && may_own_allocs())
		send_note(ALLOC_OWNER_EXITED, bpf_ktime_get_ns(), 0, 0);
	return 0;
}

TRACING(on_process_exec, "tp_btf/sched_process_exec")
{
	if (may_own_allocs())
		send_note(ALLOC_OWNER_EXECED, bpf_ktime_get_ns(), 0, 0);
	return 0;
}

#endif
