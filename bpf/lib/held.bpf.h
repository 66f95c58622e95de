/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is held: taken, and not given back yet, each with the stack that took it. */
#ifndef CORETAP_HELD_BPF_H
#define CORETAP_HELD_BPF_H

#include "lib/filter.bpf.h"
#include "lib/stack.bpf.h"

OPT(bool, held_in_sums);       /* keep sums by stack too */
OPT_OR(__u32, held_one_in, 1); /* only one of so many addresses */
OPT(__u64, held_salt);         /* which ones: others in each run */
OPT(__u64, held_min_bytes);
OPT_OR(__u64, held_max_bytes, ~0ULL);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, 0);
	__uint(max_entries, 1);
	__type(key, struct held_key);
	__type(value, struct held);
} held SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, 0);
	__uint(max_entries, 1);
	__type(key, struct held_place);
	__type(value, struct held_sum);
} held_sums SEC(".maps");

/* By the address alone, so that taking and giving back agree without having met. */
inline_ bool held_sampled(u64 address)
{
	u64 h = (address ^ held_salt) * 0x9e3779b97f4a7c15ULL;

	if (held_one_in <= 1)
		return true;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ULL;
	return (u32)(h >> 32) % held_one_in == 0;
}

/* Before its stack is taken: is it to be held? */
inline_ bool held_wanted(u64 address, u64 bytes)
{
	if (!held_sampled(address))
		return false;
	if (bytes >= held_min_bytes && bytes <= held_max_bytes)
		return true;
	count(LEDGER_FILTERED);
	return false;
}

/* A sum may fall below zero for a moment: giving back may be counted first. */
inline_ void held_add_to_sum(struct held_key *key, struct held *h, bool taken)
{
	struct held_place place = { .stack = h->stack, .owner = key->owner };
	struct held_sum *sum = bpf_map_lookup_elem(&held_sums, &place);

	if (!sum) {
		struct held_sum first = { .tgid = h->tgid };

		__builtin_memcpy(first.comm, h->comm, sizeof(first.comm));
		bpf_map_update_elem(&held_sums, &place, &first, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&held_sums, &place);
	}
	if (!sum) {
		count(LEDGER_UNTRACKED);
		return;
	}
	__sync_fetch_and_add(&sum->bytes, taken ? h->bytes : -h->bytes);
	__sync_fetch_and_add(&sum->count, taken ? 1ULL : -1ULL);
	if (taken)
		sum->newest_ns = h->time_ns;
}

/* It is held no more; a copy of what it was, if there is room for one. */
inline_ bool held_drop(struct held_key *key, struct held *was)
{
	struct held *h;

	if (tracing_stopped || !held_sampled(key->address))
		return false;
	if (!was)
		return !bpf_map_delete_elem(&held, key);
	h = bpf_map_lookup_elem(&held, key);
	if (!h)
		return false;
	*was = *h; /* after the deletion it may be another's */
	if (bpf_map_delete_elem(&held, key))
		return false;
	if (held_in_sums)
		held_add_to_sum(key, was, false);
	return true;
}

inline_ void held_give_back(struct held_key *key)
{
	struct held was;

	held_drop(key, held_in_sums ? &was : NULL);
}

/* What is held at this address already was given back unseen: nothing is handed out twice. */
inline_ void held_take(struct held_key *key, struct held *h)
{
	if (tracing_stopped)
		return;
	if (held_in_sums)
		held_give_back(key);
	if (bpf_map_update_elem(&held, key, h, BPF_ANY))
		count(LEDGER_UNTRACKED);
	else if (held_in_sums)
		held_add_to_sum(key, h, true);
}

inline_ void held_note(enum held_note_kind kind, u64 time_ns, u64 address, u64 bytes)
{
	struct held_note *n = emit_begin(sizeof(*n));

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

/* Processes that cannot hold anything need no mention. */
inline_ bool held_may_own(void)
{
	u32 tgid = current_tgid();

	return tgid && (!filter.by_tgid || bpf_map_lookup_elem(&filter_tgids, &tgid));
}

SEC("tp_btf/sched_process_exit")
int held_exit(u64 *ctx)
{
	if (last_thread_exits(ctx) && held_may_own())
		held_note(HELD_EXITED, bpf_ktime_get_ns(), 0, 0);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int held_exec(u64 *ctx)
{
	if (held_may_own())
		held_note(HELD_EXECED, bpf_ktime_get_ns(), 0, 0);
	return 0;
}

#endif
