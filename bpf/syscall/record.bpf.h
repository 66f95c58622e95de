/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes to flight recorders, one for each key; the loader creates and reads them. */
#ifndef CORETAP_RECORD_BPF_H
#define CORETAP_RECORD_BPF_H

#include "lib/core/task.bpf.h"
#include "syscall/traceloop.h"

/*
 * A recorder: record_slots slots for each CPU, then the heads of all CPUs. Slots are written
 * by programs in task context; if one preempts another, the second call is not recorded.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u64);
	__uint(value_size, sizeof(u32)); /* the loader sets a template of the inner maps */
} recorders SEC(".maps");

OPT_OR(__u32, record_slots, 64); /* per CPU, a power of two */
OPT_OR(__u32, record_cpus, 1);

/*
 * The ancestor of the running task's cgroup at this depth; 0: none. The helper became available to
 * tracing programs after 5.10 (6.1 at the latest, when the array of ids was removed: 7f203bc89eb6).
 */
struct cgroup___with_ids {
	int level;
	u64 ancestor_ids[1];
} __attribute__((preserve_access_index));

inline_ u64 current_cgroup_at(u32 level)
{
	struct cgroup___with_ids *c = NULL;
	u64 id = 0;

	if (!bpf_core_field_exists(c->ancestor_ids))
		return bpf_get_current_ancestor_cgroup_id(level);
	c = (void *)BPF_CORE_READ(current_task(), cgroups, dfl_cgrp);
	if ((int)level <= BPF_CORE_READ(c, level))
		bpf_probe_read_kernel(
			&id, sizeof(id),
			(char *)c + bpf_core_field_offset(struct cgroup___with_ids, ancestor_ids) +
				level * sizeof(id));
	return id;
}

struct recording {
	void *segments;
	struct record_head *head;
	u64 at;    /* number of the next slot to write */
	u32 first; /* of this CPU's slots */
	u32 slots; /* of this record */
};

inline_ bool record_begin(struct recording *r, u64 key)
{
	u32 cpu = bpf_get_smp_processor_id(), index = record_cpus * record_slots + cpu;
	struct record_slot *head;

	r->segments = bpf_map_lookup_elem(&recorders, &key);
	if (!r->segments)
		return false;
	head = bpf_map_lookup_elem(r->segments, &index);
	if (!head)
		return false;
	if (head->head.busy)
		return counted(LEDGER_MISSED);
	head->head.busy = 1;
	r->head = &head->head;
	r->at = head->head.next;
	r->first = cpu * record_slots;
	r->slots = 0;
	return true;
}

/* The next slot; the reader ignores it until record_end(). */
inline_ struct record_slot *record_slot(struct recording *r)
{
	u32 index = r->first + ((u32)(r->at + r->slots) & (record_slots - 1));
	struct record_slot *slot = bpf_map_lookup_elem(r->segments, &index);

	if (!slot)
		return NULL;
	*(volatile u64 *)&slot->seq = 0;
	r->slots++;
	return slot;
}

inline_ void record_done(struct recording *r, struct record_slot *slot)
{
	asm volatile("" ::: "memory");
	*(volatile u64 *)&slot->seq = r->at + r->slots;
}

/* The reader only uses slots below `next`, after longer than a CPU can delay its stores. */
inline_ void record_end(struct recording *r)
{
	r->head->calls++;
	asm volatile("" ::: "memory");
	*(volatile u64 *)&r->head->next = r->at + r->slots;
	r->head->busy = 0;
}

#endif
