/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keys -> values that the loader reads at each report (AggregateReport). An
 * aggregate is named by its map, or by its per-CPU slots NAME_cpus if no key is in
 * use. The loader sets the sizes. Counters only grow, by __sync_fetch_and_add, as
 * several CPUs may have the same key; a report is the difference of two readings.
 *
 * Contexts: all; in an NMI a new row fails if its bucket is locked. Counts UNTRACKED.
 */
#ifndef CORETAP_AGGREGATE_BPF_H
#define CORETAP_AGGREGATE_BPF_H

#include "lib/aggregate/fine.h"
#include "lib/core/task.bpf.h"

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

inline_ void hist_count(struct hist *h, u32 slot, u64 value, u64 n)
{
	barrier_var(slot);
	slot &= HIST_SLOTS - 1;
	__sync_fetch_and_add(&h->slots[slot], n);
	__sync_fetch_and_add(&h->total, value * n);
}

/* Buckets of which 2^bits are a power of two; those of smaller values are single values. */
inline_ u32 bucket_of(u64 value, u32 bits)
{
	u32 power;

	if (value >> bits == 0)
		return value;
	power = log2_u64(value) - bits;
	return (power << bits) + (value >> power);
}

/*
 * OPT, but static: programs without histograms do not have it. Histograms of powers of two are of
 * struct fine_hist instead. The loader then also sets the size of the map's values, and a step that
 * is an eighth of that of the slots, if that is a number.
 */
static const volatile bool hist_fine __attribute__((unused)) = 0;

inline_ void hist_count_fine(struct fine_hist *h, u64 value, u64 n, u64 step)
{
	u64 slot = bucket_of(value / step, HIST_FINE_BITS);

	barrier_var(slot);
	if (slot >= HIST_FINE_SLOTS)
		return;
	__sync_fetch_and_add(&h->slots[slot], n);
	__sync_fetch_and_add(&h->total, value * n);
}

/* Adds n equal values; slots are powers of two of `step`. */
inline_ void hist_log2(struct hist *h, u64 value, u64 n, u64 step)
{
	if (hist_fine)
		hist_count_fine((void *)h, value, n, step);
	else
		hist_count(h, log2_u64(value / step), value, n);
}

/* Slots of one `step` each; the last one includes all larger values. */
inline_ void hist_linear(struct hist *h, u64 value, u64 n, u64 step)
{
	u64 slot = value / step;

	hist_count(h, slot < HIST_SLOTS ? slot : HIST_SLOTS - 1, value, n);
}

inline_ u64 *hist_named(struct hist *h)
{
	return hist_fine ? &((struct fine_hist *)h)->named : &h->named;
}

/* The type of a new row of zeros: that of the values, or of what may be in their place. */
#define ZERO_OF(value_type)                                                                      \
	__typeof__(*__builtin_choose_expr(__builtin_types_compatible_p(value_type, struct hist), \
					  (struct fine_hist *)0, (value_type *)0))

/* Per-CPU counters without a key: name_slot(). */
#define SUMS(name, value_type)                 \
	CPU_SLOTS(name##_cpus, value_type);    \
	inline_ value_type *name##_slot(void)  \
	{                                      \
		return cpu_slot(&name##_cpus); \
	}

/* Adds to one of these counters. */
#define SUM_ADD(name, counter, n)                              \
	do {                                                   \
		typeof(name##_slot()) s_ = name##_slot();      \
		if (s_)                                        \
			__sync_fetch_and_add(&s_->counter, n); \
	} while (0)

OPT(__u32, owner_parts); /* enum owner_part */

/* Clears the members that are not in use, as the whole struct is part of the key. */
inline_ void cut_owner(struct task_id *owner)
{
	u64 *comm = (u64 *)owner->comm;

	owner->tid = 0;
	if (!(owner_parts & OWNER_PID))
		owner->pid = 0;
	if (!(owner_parts & OWNER_UID))
		owner->uid = 0;
	if (!(owner_parts & OWNER_CGROUP))
		owner->cgroup = 0;
	if (!(owner_parts & OWNER_COMM))
		comm[0] = comm[1] = 0;
}

/* A separate function, so that this rarely used code takes no stack space of the others. */
#define OWNED_ROW(name, key_type, value_type, function, argument, identify)                     \
	static __noinline __attribute__((unused)) value_type *function(key_type *key, argument) \
	{                                                                                       \
		struct name##_owned owned;                                                      \
                                                                                                \
		__builtin_memset(&owned, 0, sizeof(owned));                                     \
		__builtin_memcpy(&owned.key, key, sizeof(owned.key));                           \
		identify;                                                                       \
		cut_owner(&owned.owner);                                                        \
		return name##_row_at(&owned);                                                   \
	}

/*
 * name_row(): the value of a key, initialized to zeros; NULL, and counted, if the map is full.
 *
 * With --by there may be a row for each owner: a struct task_id then follows the key in the map,
 * with only the requested members set. Without --by, no code for it remains in the program. A
 * row belongs to the running task unless the program names the owner: name_row_of(), or
 * name_row_of_task() by a task's address. A tool whose rows belong to no task gives the
 * reason in its report (AggregateReport::without_owner), which then has no --by for owners.
 */
#define TABLE(name, key_type, value_type) TABLE_OF(BPF_MAP_TYPE_HASH, name, key_type, value_type)
/* The same with a value for each CPU, for keys that many CPUs update. */
#define CPU_TABLE(name, key_type, value_type) \
	TABLE_OF(BPF_MAP_TYPE_PERCPU_HASH, name, key_type, value_type)
#define TABLE_OF(map_type, name, key_type, value_type)                                      \
	struct {                                                                            \
		__uint(type, map_type);                                                     \
		__uint(map_flags, 0);                                                       \
		__uint(max_entries, 1);                                                     \
		__type(key, key_type);                                                      \
		__type(value, value_type);                                                  \
	} name SEC(".maps");                                                                \
	static const ZERO_OF(value_type) name##_zero;                                       \
	inline_ value_type *name##_row_at(const void *key)                                  \
	{                                                                                   \
		return map_row(&name, key, &name##_zero);                                   \
	}                                                                                   \
	struct name##_owned {                                                               \
		key_type key;                                                               \
		struct task_id owner;                                                       \
	};                                                                                  \
	OWNED_ROW(name, key_type, value_type, name##_row_by, const struct task_id *owner,   \
		  owned.owner = *owner)                                                     \
	OWNED_ROW(name, key_type, value_type, name##_row_by_task, struct task_struct *t,    \
		  identify_known(&owned.owner, t))                                          \
	OWNED_ROW(name, key_type, value_type, name##_row_by_current, void *unused,          \
		  identify_current(&owned.owner))                                           \
	inline_ value_type *name##_row(key_type *key)                                       \
	{                                                                                   \
		return owner_parts ? name##_row_by_current(key, NULL) : name##_row_at(key); \
	}                                                                                   \
	inline_ value_type *name##_row_of(key_type *key, const struct task_id *owner)       \
	{                                                                                   \
		return owner_parts ? name##_row_by(key, owner) : name##_row_at(key);        \
	}                                                                                   \
	inline_ value_type *name##_row_of_task(key_type *key, struct task_struct *t)        \
	{                                                                                   \
		return owner_parts ? name##_row_by_task(key, t) : name##_row_at(key);       \
	}

/*
 * A TABLE or CPU_TABLE of which each CPU caches the rows of a few keys in private cache lines. A
 * number and a second number or a pointer (0 if unneeded) identify a key: name_kept(number, other)
 * returns its value, or NULL. The caller then builds the key, and name_keep(number, other, &key)
 * caches its row, or looks it up in the table. If the key costs nothing, name_kept_row() does both.
 * The loader sets name_keeps if --max-keys does not limit keys. Programs that interrupt each other
 * must not cache rows of the same table. With a lookup in its place, bitesize takes 178 ns per
 * request instead of 96, biopattern 187 instead of 101 (run_time_ns/run_cnt of on_issue, 6.18).
 */
#define KEPT_ROWS 16
#define KEPT(name, key_type, value_type)                                          \
	OPT(bool, name##_keeps);                                                  \
	struct name##_kept_row {                                                  \
		value_type value;                                                 \
		u64 number; /* plus one; 0: free */                               \
		u64 other;                                                        \
		key_type key;                                                     \
	} __attribute__((aligned(64)));                                           \
	struct name##_kept_rows {                                                 \
		struct name##_kept_row at[KEPT_ROWS];                             \
	};                                                                        \
	CPU_SLOTS(name##_rows, struct name##_kept_rows);                          \
	inline_ struct name##_kept_row *name##_place(u64 number)                  \
	{                                                                         \
		struct name##_kept_rows *rows;                                    \
                                                                                  \
		if (!name##_keeps)                                                \
			return NULL;                                              \
		rows = cpu_slot(&name##_rows);                                    \
		barrier_var(number);                                              \
		return rows ? &rows->at[number & (KEPT_ROWS - 1)] : NULL;         \
	}                                                                         \
	inline_ value_type *name##_kept(u64 number, u64 other)                    \
	{                                                                         \
		struct name##_kept_row *row = name##_place(number);               \
                                                                                  \
		if (!row || row->number != number + 1 || row->other != other)     \
			return NULL;                                              \
		return &row->value;                                               \
	}                                                                         \
	inline_ value_type *name##_keep(u64 number, u64 other, key_type *key)     \
	{                                                                         \
		struct name##_kept_row *row = name##_place(number);               \
                                                                                  \
		if (!row || row->number) /* taken by another key, which stays */  \
			return name##_row(key);                                   \
		row->key = *key;                                                  \
		row->other = other;                                               \
		*(volatile u64 *)&row->number = number + 1;                       \
		return &row->value;                                               \
	}                                                                         \
	inline_ value_type *name##_kept_row(u64 number, u64 other, key_type *key) \
	{                                                                         \
		value_type *v = name##_kept(number, other);                       \
                                                                                  \
		return v ? v : name##_keep(number, other, key);                   \
	}

/*
 * Histograms by key, or one per CPU if no part of the key is requested
 * (name_keyed is then a constant 0, and the verifier drops the rest).
 * `add` is hist_log2 or hist_linear. The loader sets name_step: slot bounds are multiples of it.
 * name_add() adds a value for the running task, name_add_of() and name_add_of_task() for this
 * owner.
 */
#define HISTOGRAM(name, key_type) HISTOGRAM_BY(name, key_type, hist_log2)
#define HISTOGRAM_BY(name, key_type, add)                                                       \
	OPT(__u64, name##_step);                                                                \
	OPT(bool, name##_keyed);                                                                \
	TABLE(name, key_type, struct hist)                                                      \
	SUMS(name, struct hist)                                                                 \
	inline_ int name##_add_to(struct hist *h, u64 value)                                    \
	{                                                                                       \
		if (h)                                                                          \
			add(h, value, 1, name##_step);                                          \
		return 0;                                                                       \
	}                                                                                       \
	inline_ int name##_add(key_type *key, u64 value)                                        \
	{                                                                                       \
		return name##_add_to(name##_keyed ? name##_row(key) : name##_slot(), value);    \
	}                                                                                       \
	inline_ int name##_add_of(key_type *key, u64 value, const struct task_id *owner)        \
	{                                                                                       \
		return name##_add_to(name##_keyed ? name##_row_of(key, owner) : name##_slot(),  \
				     value);                                                    \
	}                                                                                       \
	inline_ int name##_add_of_task(key_type *key, u64 value, struct task_struct *t)         \
	{                                                                                       \
		return name##_add_to(name##_keyed ? name##_row_of_task(key, t) : name##_slot(), \
				     value);                                                    \
	}

/* A histogram whose key mostly is just a command name; its rows are cached (KEPT). */
#define COMM_HISTOGRAM(name, key_type)                                               \
	HISTOGRAM(name, key_type)                                                    \
	KEPT(name, key_type, struct hist)                                            \
	inline_ int name##_add_comm(key_type *key, u64 value)                        \
	{                                                                            \
		u64 *comm = (u64 *)key->comm, number = comm[0] * 0x9e3779b97f4a7c15; \
                                                                                     \
		number = number >> 32 | number << 32; /* bijective */                \
		return name##_add_to(name##_kept_row(number, comm[1], key), value);  \
	}

#endif
